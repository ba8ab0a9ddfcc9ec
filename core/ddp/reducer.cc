// PyTorch's Reducer, verb for verb: marks gradients ready, launches buckets in order, rebuilds them
// once. What rank 0 sends as a layout is checked, because ranks that are out of step read anything.
// The memory of buckets may be shared with other engines.
#include "core/ddp/reducer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

namespace lockstep::ddp {
namespace {

// The layout that rank 0's message describes. What came can be anything when the ranks are out of
// step, so it is the system's failure if it makes no sense.
Result<BucketLayout> LayoutFrom(std::span<const std::int32_t> order,
                                std::span<const std::int32_t> sizes,
                                std::span<const Gradient> gradients) {
  const bool positive = std::ranges::all_of(sizes, [](auto size) { return size > 0; });
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (!positive || total != static_cast<std::int64_t>(order.size()) ||
      !IsPermutation(order, order.size())) {
    return SystemFailed("the bucket layout that came from rank 0 is not one of this model");
  }
  BucketLayout layout;
  std::size_t next = 0;
  for (const std::int32_t size : sizes) {
    Bucket bucket;
    for (std::int32_t i = 0; i < size; ++i) {
      const std::int32_t param = order[next++];
      const Gradient& gradient = gradients[static_cast<std::size_t>(param)];
      bucket.type = gradient.type;
      bucket.elements += gradient.numel;
      bucket.params.push_back(param);
    }
    layout.push_back(std::move(bucket));
  }
  return layout;
}

}  // namespace

Reducer::Reducer(Module& module, const EngineOptions& options, Launcher& launcher,
                 HostValues& values)
    : module_(module),
      options_(options),
      launcher_(launcher),
      values_(values),
      find_unused_(options.buckets.find_unused_parameters),
      static_graph_(options.buckets.static_graph),
      hook_(MakeGradientHook(options, module.params(), launcher)) {
  for (const Parameter& param : module_.params()) {
    gradients_.push_back(
        {.numel = param.info.numel, .type = param.info.type, .sparse = param.sparse});
  }
  const std::size_t count = gradients_.size();
  hooks_fired_.assign(count, 0);
  used_map_.assign(count, 0);
  ready_.assign(count, false);
  SetLayout(InitialBuckets(gradients_, options_.buckets));
}

bool Reducer::ShouldRebuild() const { return RebuildsBuckets(options_.buckets) && !has_rebuilt_; }

void Reducer::SetLayout(BucketLayout layout) {
  layout_ = std::move(layout);
  locators_.assign(gradients_.size(), {});
  buckets_.assign(layout_.size(), {});
  for (std::size_t b = 0; b < layout_.size(); ++b) {
    std::int64_t offset = 0;
    for (const int param : layout_[b].params) {
      const auto& gradient = gradients_[static_cast<std::size_t>(param)];
      locators_[static_cast<std::size_t>(param)] = {b, offset};
      offset += gradient.numel * collective::SizeOf(gradient.type);
    }
    buckets_[b].bucket = &layout_[b];
    buckets_[b].index = static_cast<int>(b);
    buckets_[b].last = b + 1 == layout_.size();
  }
}

// Memory can be shared with other engines, so it is asked for anew; as much for every layout, so
// that it does not grow while work of the last iteration is on its way.
Status Reducer::PlaceBuckets() {
  using Area = BucketMemory::Area;
  const EnginePorts& ports = launcher_.ports();
  BucketMemory& memory = ports.bucket_memory == nullptr ? own_memory_ : *ports.bucket_memory;
  std::int64_t bytes = 0;
  for (const Gradient& gradient : gradients_) {
    bytes += CacheAligned(gradient.numel * collective::SizeOf(gradient.type));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(void* data, memory.Reserve(ports.device, Area::kBuckets, bytes));
  const bool compresses = options_.hook == CommHook::kFp16 || options_.hook == CommHook::kBf16;
  void* compressed = nullptr;
  if (compresses) {
    LOCKSTEP_ASSIGN_OR_RETURN(compressed, memory.Reserve(ports.device, Area::kCompressed, bytes));
  }
  std::int64_t offset = 0;
  for (BucketInFlight& bucket : buckets_) {
    bucket.data = static_cast<std::byte*>(data) + offset;
    if (compresses) bucket.compressed = static_cast<std::byte*>(compressed) + offset;
    offset += CacheAligned(bucket.bucket->bytes());
  }
  return OkStatus();
}

Status Reducer::PrepareForBackward(const std::vector<bool>& used) {
  expect_hooks_ = true;
  finalize_queued_ = false;
  next_bucket_ = 0;
  pending_.clear();
  for (const Bucket& bucket : layout_) pending_.push_back(bucket.params.size());
  if (static_graph_) hooks_left_ = hooks_fired_;
  has_marked_unused_ = false;
  ready_.assign(gradients_.size(), false);
  if (FindsUnused()) {
    unused_.clear();
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) unused_.push_back(static_cast<int>(i));
    }
  }
  return PlaceBuckets();
}

Status Reducer::UnfinishedReduction() const {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    if (!ready_[i]) missing.push_back(i);
  }
  return SystemFailed(
      "Expected to have finished reduction in the prior iteration before starting a new one. {} "
      "Parameter indices which did not receive grad for rank {}: {}",
      static_graph_ ? "The training graph changed, which static_graph does not allow."
                    : "The module has parameters that were not used in producing loss; "
                      "find_unused_parameters=True finds them.",
      launcher_.ports().communicator.rank(), fmt::join(missing, " "));
}

Status Reducer::RebuildBuckets() {
  if (require_finalize_) return UnfinishedReduction();
  if (!ShouldRebuild() || rebuilt_params_.empty()) return OkStatus();
  if (rebuilt_params_.size() != gradients_.size()) {
    return SystemFailed(
        "rebuilt parameter indices size is not same as original model parameters size: {} versus "
        "{}",
        rebuilt_params_.size(), gradients_.size());
  }
  BucketLayout layout = SteadyBuckets(gradients_, rebuilt_params_, options_.buckets);
  LOCKSTEP_RETURN_IF_ERROR(SyncLayout(layout));
  has_rebuilt_ = true;
  rebuilt_params_.clear();
  if (expect_hooks_) {
    return SystemFailed("`initialize_buckets` must NOT be called during autograd execution.");
  }
  SetLayout(std::move(layout));
  return OkStatus();
}

Status Reducer::SyncLayout(BucketLayout& layout) {
  std::vector<std::int32_t> order;
  std::vector<std::int32_t> sizes;
  for (const Bucket& bucket : layout) {
    order.insert(order.end(), bucket.params.begin(), bucket.params.end());
    sizes.push_back(static_cast<std::int32_t>(bucket.params.size()));
  }
  order.push_back(static_cast<std::int32_t>(layout.size()));
  Operation operation = {.collective = Collective::kBroadcast,
                         .type = DataType::kI32,
                         .count = static_cast<std::int64_t>(order.size())};
  LOCKSTEP_ASSIGN_OR_RETURN(order, values_.Exchange(operation, order, Purpose::kRebuildOrder));
  const std::int32_t count = order.back();
  const auto params = static_cast<std::int64_t>(gradients_.size());
  if (count < 1 || count > params) {
    return SystemFailed("rank 0 sent a layout of {} buckets for {} parameters", count, params);
  }
  sizes.resize(static_cast<std::size_t>(count), sizes.back());
  operation.count = count;
  LOCKSTEP_ASSIGN_OR_RETURN(sizes, values_.Exchange(operation, sizes, Purpose::kRebuildSizes));
  order.pop_back();
  LOCKSTEP_ASSIGN_OR_RETURN(layout, LayoutFrom(order, sizes, gradients_));
  return OkStatus();
}

}  // namespace lockstep::ddp
