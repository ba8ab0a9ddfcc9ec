// The three models of the golden traces, with the weights and inputs that PyTorch draws after
// manual_seed(0). The weights are printed by PyTorch 1.13.1; the inputs come from a Mersenne
// Twister and PyTorch's own Box-Muller blocks.
#include "core/ddp/small_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <string>
#include <utility>

#include "core/ddp/small_layers.h"

namespace lockstep::ddp {
namespace {

// What nn.Linear draws after torch.manual_seed(0), in order; printed by PyTorch 1.13.1.
const std::vector<float> kLinear11 = {-0.00748682022f, 0.536443591f};
const std::vector<float> kFirst16 = {
    -0.00374341011f, 0.268221796f,  -0.411522567f,  -0.367969513f, -0.192577183f, 0.134078681f,
    -0.00990658998f, 0.396444738f,  -0.0443720222f, 0.132306278f,  -0.151106536f, -0.0982826948f,
    -0.477674246f,   -0.331141055f, -0.20611155f,   0.0185217857f};

constexpr int kBatch = 8;

std::vector<float> FirstOf(const std::vector<float>& values, std::size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
}

// What the models have in common: their tensors as the port shows them.
class SmallModel : public Module {
 public:
  SmallModel(const SmallModelOptions& options, device::Kernels& kernels)
      : options_(options), kernels_(kernels) {}

  std::vector<Parameter>& params() override { return params_; }
  std::vector<ModuleBuffer>& buffers() override { return buffers_; }
  const std::vector<bool>& used() const override { return used_; }

  Status WorkOn(device::Device& device) {
    device_ = &device;
    for (Parameter& param : params_) {
      LOCKSTEP_ASSIGN_OR_RETURN(auto memory, device.Allocate(param.info.bytes()));
      param.grad = memory->data();
      device_gradients_.push_back(std::move(memory));
    }
    return OkStatus();
  }

  Status Forward(const Pass& pass, ModuleContext context) override {
    Compute(context, options_.compute_us / 3);
    LOCKSTEP_RETURN_IF_ERROR(Run(pass, context));
    return context.compute.inline_execution() ? context.compute.status() : OkStatus();
  }
  Status Backward(const Ready& ready, ModuleContext context) override {
    Compute(context, options_.compute_us * 2 / 3);
    return RunBackward(ready, context);
  }

 protected:
  virtual Status Run(const Pass& pass, ModuleContext context) = 0;
  virtual Status RunBackward(const Ready& ready, ModuleContext context) = 0;

  void Add(std::string name, std::vector<std::int64_t> shape, SmallTensor& tensor) {
    Parameter param;
    param.info.name = std::move(name);
    param.info.shape = std::move(shape);
    param.info.numel = static_cast<std::int64_t>(tensor.data.size());
    param.data = tensor.data.data();
    param.grad = tensor.grad.data();
    params_.push_back(std::move(param));
    used_.push_back(true);
  }
  void AddBuffer(std::string name, std::vector<std::int64_t> shape, DataType type,
                 std::int64_t numel, void* data) {
    buffers_.push_back({{std::move(name), std::move(shape), type, numel}, data});
  }
  void AddLinear(const std::string& name, LinearLayer& layer, std::int64_t out, std::int64_t in) {
    Add(name + ".weight", {out, in}, layer.weight);
    Add(name + ".bias", {out}, layer.bias);
  }

  // Enqueues param.grad += values, then says that it is ready.
  Status Accumulate(std::size_t param, const std::vector<double>& values, const Ready& ready,
                    ModuleContext context) {
    Parameter& to = params_[param];
    const bool overwrites = !to.has_grad;
    to.has_grad = true;
    auto* grad = static_cast<float*>(to.grad);
    context.compute.Do([grad, values = &values, overwrites] {
      for (std::size_t i = 0; i < values->size(); ++i) {
        grad[i] = (overwrites ? 0 : grad[i]) + static_cast<float>((*values)[i]);
      }
    });
    return ready(static_cast<int>(param));
  }

  const SmallModelOptions& options() const { return options_; }
  device::Device* device() const { return device_; }
  std::vector<bool> used_;

 private:
  void Compute(ModuleContext context, double us) {
    if (us <= 0) return;
    kernels_.Compute(context.compute, us * 1000, params_.front().grad,
                     params_.front().info.bytes());
  }

  SmallModelOptions options_;
  device::Kernels& kernels_;
  std::vector<Parameter> params_;
  std::vector<ModuleBuffer> buffers_;
  device::Device* device_ = nullptr;
  std::vector<std::unique_ptr<device::Buffer>> device_gradients_;  // where a device holds them
};

Rows OnesLike(const Rows& rows) {
  Rows ones(rows.count, rows.width);
  for (double& value : ones.values) value = 1;
  return ones;
}

// The inputs that the golden traces were taken with: after torch.manual_seed(0) and the model's own
// initialization, which draws a number for each parameter element, one torch.randn(8, 4) after the
// other. Source: pytorch aten/src/ATen/native/cpu/DistributionTemplates.h (normal_fill).
class RandomInputs {
 public:
  explicit RandomInputs(int draws_before) : draws_before_(draws_before) {}

  Rows Get(std::int64_t input) {
    constexpr int kElements = kBatch * 4;
    if (input != next_) {
      generator_.seed(0);
      generator_.discard(static_cast<unsigned long long>(draws_before_ + kElements * input));
    }
    next_ = input + 1;
    Rows x(kBatch, 4);
    for (double& value : x.values) value = (generator_() & 0xffffff) * 0x1p-24;
    // Box and Muller, in blocks of 16.
    for (std::size_t block = 0; block < kElements; block += 16) {
      for (std::size_t i = block; i < block + 8; ++i) {
        const double radius = std::sqrt(-2 * std::log(1 - x.values[i]));
        const double angle = 2 * std::numbers::pi * x.values[i + 8];
        x.values[i] = radius * std::cos(angle);
        x.values[i + 8] = radius * std::sin(angle);
      }
    }
    return x;
  }

 private:
  int draws_before_;
  std::int64_t next_ = -1;
  std::mt19937 generator_;
};

class Linear11 final : public SmallModel {
 public:
  Linear11(const SmallModelOptions& options, device::Kernels& kernels)
      : SmallModel(options, kernels) {
    Add("weight", {1, 1}, linear_.weight);
    Add("bias", {1}, linear_.bias);
  }

 private:
  Status Run(const Pass&, ModuleContext context) override {
    context.compute.Do([this] {
      Rows x(options().linear_rows, 1);
      y_ = linear_.Forward(OnesLike(x));
    });
    return OkStatus();
  }
  Status RunBackward(const Ready& ready, ModuleContext context) override {
    context.compute.Do([this] { linear_.Backward(OnesLike(y_), dbias_, dweight_); });
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(1, dbias_, ready, context));
    return Accumulate(0, dweight_, ready, context);
  }

  LinearLayer linear_{1, 1, {kLinear11[0]}, {kLinear11[1]}};
  Rows y_;
  std::vector<double> dbias_;
  std::vector<double> dweight_;
};

class Bn442 final : public SmallModel {
 public:
  Bn442(const SmallModelOptions& options, device::Kernels& kernels) : SmallModel(options, kernels) {
    AddLinear("0", first_, 4, 4);
    Add("1.weight", {4}, norm_.weight);
    Add("1.bias", {4}, norm_.bias);
    AddLinear("2", last_, 2, 4);
    AddBuffer("1.running_mean", {4}, DataType::kF32, 4, norm_.running_mean.data());
    AddBuffer("1.running_var", {4}, DataType::kF32, 4, norm_.running_var.data());
    AddBuffer("1.num_batches_tracked", {}, DataType::kI64, 1, &norm_.batches_tracked);
  }

 private:
  bool Syncs(ModuleContext context) const {
    return options().sync_batch_norm && training_ && context.collectives != nullptr &&
           context.collectives->size() > 1;
  }

  Status Run(const Pass& pass, ModuleContext context) override {
    training_ = pass.training;
    const bool syncs = Syncs(context);
    const std::size_t count = statistics_.size();
    gathered_.resize(syncs ? count * static_cast<std::size_t>(context.collectives->size()) : count);
    context.compute.Do([this, syncs, input = pass.input] {
      hidden_ = first_.Forward(inputs_.Get(input));
      statistics_ = norm_.Statistics(hidden_);
      if (!syncs) gathered_ = statistics_;
    });
    if (syncs) {
      const std::size_t most = count + gathered_.size();
      LOCKSTEP_ASSIGN_OR_RETURN(float* const there, Twin(most));
      Copy(context.compute, statistics_, there, /*in=*/true);
      LOCKSTEP_RETURN_IF_ERROR(context.collectives->AllGatherStatistics(
          0, there != nullptr ? there : statistics_.data(),
          there != nullptr ? there + count : gathered_.data(), static_cast<std::int64_t>(count)));
      Copy(context.compute, gathered_, there != nullptr ? there + count : nullptr, /*in=*/false);
    }
    context.compute.Do(
        [this] { y_ = last_.Forward(norm_.Forward(hidden_, gathered_, training_)); });
    return OkStatus();
  }

  Status RunBackward(const Ready& ready, ModuleContext context) override {
    context.compute.Do(
        [this] { dnorm_ = last_.Backward(OnesLike(y_), gradients_[5], gradients_[4]); });
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(5, gradients_[5], ready, context));
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(4, gradients_[4], ready, context));
    context.compute.Do(
        [this] { sums_ = norm_.BackwardSums(dnorm_, gradients_[2], gradients_[3]); });
    if (Syncs(context)) {
      LOCKSTEP_ASSIGN_OR_RETURN(float* const there, Twin(sums_.size()));
      Copy(context.compute, sums_, there, /*in=*/true);
      LOCKSTEP_RETURN_IF_ERROR(context.collectives->SumStatistics(
          0, there != nullptr ? there : sums_.data(), 2 * norm_.width()));
      Copy(context.compute, sums_, there, /*in=*/false);
    }
    context.compute.Do(
        [this] { first_.Backward(norm_.Backward(dnorm_, sums_), gradients_[1], gradients_[0]); });
    for (const std::size_t param : {2, 3, 1, 0}) {
      LOCKSTEP_RETURN_IF_ERROR(Accumulate(param, gradients_[param], ready, context));
    }
    return OkStatus();
  }

  // Where the device's libraries reach what they are to exchange; nullptr: they reach all.
  Result<float*> Twin(std::size_t count) {
    if (device() == nullptr) return nullptr;
    if (count > twin_count_) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          twin_, device()->Allocate(static_cast<std::int64_t>(count * sizeof(float))));
      twin_count_ = count;
    }
    return static_cast<float*>(twin_->data());
  }
  static void Copy(device::Stream& stream, std::vector<float>& here, float* there, bool in) {
    if (there == nullptr) return;
    stream.Do([&here, there, in] {
      if (in) {
        std::copy(here.begin(), here.end(), there);
      } else {
        std::copy(there, there + here.size(), here.begin());
      }
    });
  }

  LinearLayer first_{4, 4, kFirst16, {0.197667599f, 0.300011396f, -0.338970542f, -0.217731416f}};
  BatchNormLayer norm_{4};
  LinearLayer last_{4,
                    2,
                    {0.181608558f, 0.415193975f, -0.102900088f, 0.374155879f, -0.0805916786f,
                     0.0529070497f, 0.452738106f, -0.46383518f},
                    {-0.31476897f, -0.126582623f}};
  RandomInputs inputs_{30};
  bool training_ = true;
  Rows hidden_;
  Rows y_;
  Rows dnorm_;
  std::vector<float> statistics_ = std::vector<float>(9);
  std::vector<float> gathered_;
  std::vector<float> sums_ = std::vector<float>(8);
  std::unique_ptr<device::Buffer> twin_;
  std::size_t twin_count_ = 0;
  std::vector<double> gradients_[6];
};

class TwoBranch final : public SmallModel {
 public:
  TwoBranch(const SmallModelOptions& options, device::Kernels& kernels)
      : SmallModel(options, kernels) {
    AddLinear("a", a_, 3, 4);
    AddLinear("b", b_, 2, 3);
    AddLinear("c", c_, 5, 3);
    const std::size_t unused = options.branch_c ? 2 : 4;
    used_[unused] = used_[unused + 1] = false;
  }

 private:
  LinearLayer& branch() { return options().branch_c ? c_ : b_; }

  Status Run(const Pass& pass, ModuleContext context) override {
    context.compute.Do(
        [this, input = pass.input] { y_ = branch().Forward(a_.Forward(inputs_.Get(input))); });
    return OkStatus();
  }

  Status RunBackward(const Ready& ready, ModuleContext context) override {
    context.compute.Do([this] {
      const Rows dhidden = branch().Backward(OnesLike(y_), dbranch_bias_, dbranch_weight_);
      a_.Backward(dhidden, dbias_, dweight_);
    });
    const std::size_t weight = options().branch_c ? 4 : 2;
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(weight + 1, dbranch_bias_, ready, context));
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(weight, dbranch_weight_, ready, context));
    LOCKSTEP_RETURN_IF_ERROR(Accumulate(1, dbias_, ready, context));
    return Accumulate(0, dweight_, ready, context);
  }

  LinearLayer a_{4, 3, FirstOf(kFirst16, 12), {-0.477674246f, -0.331141055f, -0.20611155f}};
  LinearLayer b_{
      3,
      2,
      {0.0213871151f, 0.228246883f, 0.346423328f, -0.391409457f, -0.251414567f, 0.20970349f},
      {0.479424685f, -0.118818782f}};
  LinearLayer c_{3,
                 5,
                 {0.432037979f, -0.0930592567f, 0.0610917993f, 0.522776902f, -0.535590708f,
                  -0.363463879f, -0.146165013f, -0.225051105f, 0.498831093f, -0.374226689f,
                  -0.265773296f, -0.403360248f, -0.540723741f, -0.337022722f, 0.496289164f},
                 {0.257624298f, 0.279825807f, 0.0303637516f, -0.295997947f, 0.0976788178f}};
  RandomInputs inputs_{43};
  Rows y_;
  std::vector<double> dbias_;
  std::vector<double> dweight_;
  std::vector<double> dbranch_bias_;
  std::vector<double> dbranch_weight_;
};

}  // namespace

const std::vector<std::string_view>& SmallModelNames() {
  static const std::vector<std::string_view> names = {"linear_1_1", "bn_4_4_2", "two_branch"};
  return names;
}

Result<std::unique_ptr<Module>> MakeSmallModel(std::string_view name,
                                               const SmallModelOptions& options,
                                               device::Kernels& kernels, device::Device* device) {
  std::unique_ptr<SmallModel> model;
  if (name == "linear_1_1") model = std::make_unique<Linear11>(options, kernels);
  if (name == "bn_4_4_2") model = std::make_unique<Bn442>(options, kernels);
  if (name == "two_branch") model = std::make_unique<TwoBranch>(options, kernels);
  if (model == nullptr) {
    return InvalidInput("model '{}' is not a small one; choose one of {}", name,
                        fmt::join(SmallModelNames(), ", "));
  }
  if (device != nullptr) LOCKSTEP_RETURN_IF_ERROR(model->WorkOn(*device));
  return model;
}

}  // namespace lockstep::ddp
