// A model of a manifest's shapes. Its passes read the parameters or compute for a given time, and
// write gradients whose values are known. Batch norm layers are found by the names of their
// buffers. SyncBatchNorm exchanges what PyTorch's would. A parameter's gradient repeats a tile of
// small integers (core/device/tile.h), which depends on rank, input and parameter; with PowerSGD a
// matrix has rank 1, so that compression loses nothing.
#include "core/ddp/manifest_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/check.h"
#include "core/base/random.h"
#include "core/collective/data_type.h"
#include "core/collective/half.h"
#include "core/ddp/buckets.h"
#include "core/device/host/host_tile.h"
#include "core/device/tile.h"

namespace lockstep::ddp {
namespace {

constexpr std::string_view kRunningMean = ".running_mean";
constexpr double kPatienceSeconds = 600;  // with memory that is written once

Status Examine(const ModelTensors& tensors) {
  const std::size_t count = tensors.params.size();
  if (count == 0) return InvalidInput("the model has no parameters; give it some");
  for (const TensorInfo& info : tensors.params) {
    if (collective::IsComputeType(info.type)) continue;
    return InvalidInput("parameter {} is of type {}; gradients are f16, bf16, f32 or f64",
                        info.name, collective::NameOf(info.type));
  }
  if (IsPermutation(tensors.ready_order, count)) return OkStatus();
  return InvalidInput(
      "the model's ready order of {} entries is no permutation of its {} parameters; name each "
      "once",
      tensors.ready_order.size(), count);
}

// Matrices as PowerSGD sees them: shape[0] rows.
bool IsMatrix(const TensorInfo& info) { return info.shape.size() > 1 && info.numel > 0; }
std::int64_t ColumnsOf(const TensorInfo& info) { return info.numel / info.shape[0]; }

// 1 to 4: of a row as each rank and input has it, of a column the same everywhere.
float RowFactor(int rank, std::int64_t input, int param, std::int64_t row) {
  return static_cast<float>(
      1 + (Mix64(device::TileKey(rank, input, param) + static_cast<std::uint64_t>(row)) & 3));
}
float ColumnFactor(int param, std::int64_t column) {
  return static_cast<float>(
      1 +
      (Mix64(static_cast<std::uint64_t>(param) * 7919 + static_cast<std::uint64_t>(column)) & 3));
}

// Whether the gradient is a tile that any device writes; else it is a matrix of rank 1.
bool GradientIsTile(const TensorInfo& info, bool low_rank) { return !low_rank || !IsMatrix(info); }

// Of such a matrix: grad = or += the product of the factors of row and column.
void WriteLowRankGradient(int rank, std::int64_t input, int param, const TensorInfo& info,
                          bool overwrite, void* grad) {
  const std::int64_t columns = ColumnsOf(info);
  std::vector<float> row(static_cast<std::size_t>(columns));
  for (std::int64_t r = 0; r < info.shape[0]; ++r) {
    const float factor = RowFactor(rank, input, param, r);
    // A row is put tile by tile, since PutTile repeats what it is given every kTile elements.
    for (std::int64_t begin = 0; begin < columns; begin += device::kTile) {
      const std::int64_t length = std::min(device::kTile, columns - begin);
      row.resize(static_cast<std::size_t>(length));
      for (std::int64_t c = 0; c < length; ++c) {
        row[static_cast<std::size_t>(c)] = factor * ColumnFactor(param, begin + c);
      }
      auto* at =
          static_cast<std::byte*>(grad) + (r * columns + begin) * collective::SizeOf(info.type);
      device::host::PutTile(info.type, at, length, row, !overwrite);
    }
  }
}

}  // namespace

ExpectedGradient::ExpectedGradient(int ranks, std::int64_t first_input, std::int64_t inputs,
                                   int param, const TensorInfo& info, bool low_rank)
    : low_rank_(!GradientIsTile(info, low_rank)) {
  const std::int64_t length = low_rank_ ? info.shape[0] : std::min(device::kTile, info.numel);
  tile_.assign(static_cast<std::size_t>(length), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t input = first_input; input < first_input + inputs; ++input) {
      const std::uint64_t key = device::TileKey(rank, input, param);
      for (std::int64_t i = 0; i < length; ++i) {
        tile_[static_cast<std::size_t>(i)] +=
            low_rank_ ? RowFactor(rank, input, param, i) : device::TileValue(key, i);
      }
    }
  }
  for (double& value : tile_) value /= ranks;
  if (!low_rank_) return;
  columns_ = ColumnsOf(info);
  for (std::int64_t c = 0; c < columns_; ++c) row_.push_back(ColumnFactor(param, c));
}

double ExpectedGradient::At(std::int64_t element) const {
  if (!low_rank_) return tile_[static_cast<std::size_t>(element % device::kTile)];
  return tile_[static_cast<std::size_t>(element / columns_)] *
         row_[static_cast<std::size_t>(element % columns_)];
}

double GradientElement(DataType type, const void* data, std::int64_t element) {
  switch (type) {
    case DataType::kF32:
      return static_cast<const float*>(data)[element];
    case DataType::kF64:
      return static_cast<const double*>(data)[element];
    case DataType::kF16:
      return collective::FloatFromF16(static_cast<const std::uint16_t*>(data)[element]);
    case DataType::kBf16:
      return collective::FloatFromBf16(static_cast<const std::uint16_t*>(data)[element]);
    default:
      LOCKSTEP_CHECK(false, "gradients are floating-point");
  }
}

void ManifestModel::set_input_counter(std::int64_t* counter) {
  LOCKSTEP_CHECK(counter == nullptr || !options_.low_rank, "these gradients are the host's work");
  input_counter_ = counter;
}

Status ManifestModel::Allocate(const ModelTensors& tensors, device::Device& device) {
  device_ = &device;
  ready_order_ = tensors.ready_order;
  std::int64_t bytes = 0;
  for (const TensorInfo& info : tensors.params) bytes += 2 * CacheAligned(info.bytes());
  for (const TensorInfo& info : tensors.buffers) bytes += CacheAligned(info.bytes());
  LOCKSTEP_ASSIGN_OR_RETURN(memory_, device.Allocate(bytes));
  auto* next = static_cast<std::byte*>(memory_->data());
  const auto take = [&next](const TensorInfo& info) {
    return std::exchange(next, next + CacheAligned(info.bytes()));
  };
  // What is written there has no meaning, but is different on every rank.
  std::unique_ptr<device::Stream> stream = device.NewInlineStream();
  if (stream == nullptr) stream = device.NewStream();
  for (const TensorInfo& info : tensors.params) {
    Parameter param{.info = info, .data = take(info), .grad = take(info)};
    kernels_.WriteTile(*stream, info.type, param.data, info.numel,
                       {.rank = options_.rank, .input = -1}, /*add=*/false);
    total_bytes_ += info.bytes();
    params_.push_back(std::move(param));
  }
  for (const TensorInfo& info : tensors.buffers) {
    ModuleBuffer buffer{info, take(info)};
    const std::vector<char> values(static_cast<std::size_t>(info.bytes()),
                                   static_cast<char>(options_.rank & 0x3f));
    kernels_.Copy(*stream, buffer.data, values.data(), info.bytes());
    LOCKSTEP_RETURN_IF_ERROR(stream->Synchronize(Deadline::AfterSeconds(kPatienceSeconds)));
    buffers_.push_back(std::move(buffer));
  }
  LOCKSTEP_RETURN_IF_ERROR(stream->Synchronize(Deadline::AfterSeconds(kPatienceSeconds)));
  used_.assign(params_.size(), true);
  for (const int param : options_.unused) used_.at(static_cast<std::size_t>(param)) = false;
  FindNormLayers();
  return OkStatus();
}

void ManifestModel::FindNormLayers() {
  norm_of_param_.assign(params_.size(), -1);
  if (!options_.sync_batch_norm) return;
  for (const ModuleBuffer& buffer : buffers_) {
    const std::string& name = buffer.info.name;
    if (!name.ends_with(kRunningMean)) continue;
    const std::string prefix = name.substr(0, name.size() - kRunningMean.size() + 1);
    for (std::size_t i = 0; i < params_.size(); ++i) {
      const std::string& param = params_[i].info.name;
      const bool belongs = param == prefix + "weight" || param == prefix + "bias";
      if (belongs) norm_of_param_[i] = static_cast<int>(norms_.size());
    }
    norms_.push_back({buffer.info.numel, nullptr});
  }
}

Result<float*> ManifestModel::NormMemory(NormLayer& layer, int ranks) {
  if (layer.memory == nullptr) {
    const std::int64_t count = 2 * layer.channels + 1;
    LOCKSTEP_ASSIGN_OR_RETURN(
        layer.memory, device_->Allocate((1 + ranks) * count * static_cast<int>(sizeof(float))));
  }
  return static_cast<float*>(layer.memory->data());
}

Status ManifestModel::Synchronize(ModuleContext context, std::size_t layer, bool forward) {
  const bool alone = context.collectives == nullptr || context.collectives->size() == 1;
  if (alone || !pass_.training) return OkStatus();
  NormLayer& norm = norms_[layer];
  LOCKSTEP_ASSIGN_OR_RETURN(float* const own, NormMemory(norm, context.collectives->size()));
  const std::int64_t count = 2 * norm.channels;
  const int index = static_cast<int>(layer);
  if (!forward) return context.collectives->SumStatistics(index, own, count);
  return context.collectives->AllGatherStatistics(index, own, own + count + 1, count + 1);
}

void ManifestModel::Compute(ModuleContext context, const Parameter& param, double share) {
  const std::int64_t bytes = param.info.bytes();
  if (bytes == 0) return;
  if (options_.compute_us <= 0) return kernels_.Read(context.compute, param.data, bytes);
  const double ns = options_.compute_us * 1000 * share * static_cast<double>(bytes) /
                    static_cast<double>(total_bytes_);
  if (options_.products) return kernels_.ComputeProducts(context.compute, ns, param.info.type);
  kernels_.Compute(context.compute, ns, param.data, bytes);
}

// num_batches_tracked of every batch norm layer.
void ManifestModel::CountBatch(ModuleContext context) {
  for (const ModuleBuffer& buffer : buffers_) {
    if (buffer.info.type != DataType::kI64 || buffer.info.numel != 1) continue;
    kernels_.Increment(context.compute, static_cast<std::int64_t*>(buffer.data));
  }
}

Status ManifestModel::Forward(const Pass& pass, ModuleContext context) {
  pass_ = pass;
  if (input_counter_ != nullptr) kernels_.Increment(context.compute, input_counter_);
  int last_norm = -1;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    const int norm = norm_of_param_[i];
    if (norm >= 0 && norm != std::exchange(last_norm, norm)) {
      LOCKSTEP_RETURN_IF_ERROR(Synchronize(context, static_cast<std::size_t>(norm), true));
    }
    if (used_[i]) Compute(context, params_[i], 1.0 / 3);
  }
  if (pass.training) CountBatch(context);
  return context.compute.inline_execution() ? context.compute.status() : OkStatus();
}

void ManifestModel::WriteGradient(ModuleContext context, int index) {
  Parameter& param = params_[static_cast<std::size_t>(index)];
  const bool overwrites = !std::exchange(param.has_grad, true);
  if (GradientIsTile(param.info, options_.low_rank)) {
    const device::TileSource source{options_.rank, pass_.input, input_counter_, index};
    return kernels_.WriteTile(context.compute, param.info.type, param.grad, param.info.numel,
                              source, !overwrites);
  }
  context.compute.Do([this, index, &param, overwrites, input = pass_.input] {
    WriteLowRankGradient(options_.rank, input, index, param.info, overwrites, param.grad);
  });
}

Status ManifestModel::Backward(const Ready& ready, ModuleContext context) {
  int last_norm = -1;
  for (const int index : ready_order_) {
    const auto i = static_cast<std::size_t>(index);
    const int norm = norm_of_param_[i];
    if (norm >= 0 && norm != std::exchange(last_norm, norm)) {
      LOCKSTEP_RETURN_IF_ERROR(Synchronize(context, static_cast<std::size_t>(norm), false));
    }
    if (!used_[i]) continue;
    Compute(context, params_[i], 2.0 / 3);
    WriteGradient(context, index);
    LOCKSTEP_RETURN_IF_ERROR(ready(index));
  }
  return OkStatus();
}

Result<std::unique_ptr<ManifestModel>> ManifestModel::Make(const ModelTensors& tensors,
                                                           const ManifestModelOptions& options,
                                                           device::Device& device,
                                                           device::Kernels& kernels) {
  LOCKSTEP_RETURN_IF_ERROR(Examine(tensors));
  for (const int param : options.unused) {
    if (param >= 0 && static_cast<std::size_t>(param) < tensors.params.size()) continue;
    return InvalidInput("parameter {} is unused, but the model has only {}; name 0 to {}", param,
                        tensors.params.size(), tensors.params.size() - 1);
  }
  std::unique_ptr<ManifestModel> model(new ManifestModel(options, kernels));
  LOCKSTEP_RETURN_IF_ERROR(model->Allocate(tensors, device));
  return model;
}

double RoundingOf(collective::DataType type) {
  if (type == collective::DataType::kBf16) return 0x1p-8;
  if (type == collective::DataType::kF16) return 0x1p-11;
  return type == collective::DataType::kF32 ? 0x1p-24 : 0x1p-53;
}

double RoundingOfMean(int ranks, std::int64_t inputs, std::int64_t all_reduces, double rounding) {
  const double terms = static_cast<double>(inputs);
  // Whole numbers up to this one. A mean has units of 1 / ranks; divided again, it has 1 / ranks^2.
  const double largest = 16.0 * terms * ranks * (all_reduces > 1 ? ranks : 1);
  if (std::has_single_bit(static_cast<unsigned>(ranks)) && largest * rounding <= 1) return 0;
  return (terms + 2.0 * ranks * static_cast<double>(all_reduces)) * rounding;
}

GradientCheck CheckMeanGradients(ManifestModel& model, int ranks, std::int64_t first_input,
                                 std::int64_t inputs, double tolerance,
                                 const std::function<void()>& alive) {
  GradientCheck check;
  const bool low_rank = model.options().low_rank;
  for (std::size_t p = 0; p < model.params().size(); ++p) {
    const Parameter& param = model.params()[p];
    const ExpectedGradient expected(ranks, first_input, inputs, static_cast<int>(p), param.info,
                                    low_rank);
    const double most = std::max(tolerance, RoundingOfMean(ranks, inputs, /*all_reduces=*/inputs,
                                                           RoundingOf(param.info.type)));
    for (std::int64_t e = 0; e < param.info.numel; ++e) {
      const double want = expected.At(e);
      const double got = GradientElement(param.info.type, param.grad, e);
      if (++check.compared % kElementsAtOnce == 0) alive();
      if (param.has_grad && std::abs(got - want) <= most * std::abs(want)) continue;
      if (check.wrong++ > 0) continue;
      check.first = param.has_grad ? fmt::format("parameter {}, element {}: {} instead of {}",
                                                 param.info.name, e, got, want)
                                   : fmt::format("parameter {} has no gradient", param.info.name);
    }
  }
  return check;
}

}  // namespace lockstep::ddp
