// A module with the tensors of a real model and synthetic gradients whose values are known: what
// the gradient of any element must be after any iteration can be computed without the ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/module.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::ddp {

// A model as datasets/ describes it.
struct ModelTensors {
  std::vector<TensorInfo> params;  // in order of registration; floating-point types
  std::vector<int> ready_order;    // in which gradients become ready: a permutation
  std::vector<TensorInfo> buffers;
};

struct ManifestModelOptions {
  int rank = 0;
  // Time of the forward (a third) and backward pass, spread over the parameters by size; writing
  // the gradients comes on top. 0: each parameter is read once in either pass.
  double compute_us = 0;
  bool products = false;  // that time is spent on products of matrices, not on reading memory
  bool sync_batch_norm = false;  // buffers *.running_mean name the layers
  bool low_rank = false;         // gradients of matrices have rank 1 (for PowerSGD)
  std::vector<int> unused = {};  // parameters that this rank's graph does not reach
};

class ManifestModel final : public Module {
 public:
  // Allocates parameters, gradients and buffers on the device; their values differ from rank to
  // rank. Device and kernels outlive the model. kInvalidInput if the tensors are no such model.
  static Result<std::unique_ptr<ManifestModel>> Make(const ModelTensors& tensors,
                                                     const ManifestModelOptions& options,
                                                     device::Device& device,
                                                     device::Kernels& kernels);
  std::vector<Parameter>& params() override { return params_; }
  std::vector<ModuleBuffer>& buffers() override { return buffers_; }
  const std::vector<bool>& used() const override { return used_; }
  Status Forward(const Pass& pass, ModuleContext context) override;
  Status Backward(const Ready& ready, ModuleContext context) override;
  // For the next forward pass; as ManifestModelOptions has them.
  void set_compute(double compute_us, bool products) {
    options_.compute_us = compute_us;
    options_.products = products;
  }
  const ManifestModelOptions& options() const { return options_; }
  // From the next forward pass on gradients are of the input whose number is in this memory of the
  // device, where each forward pass counts it up; nullptr: of the input that the pass says. For
  // passes that are kept and repeated. Not with gradients of low rank.
  void set_input_counter(std::int64_t* counter);

 private:
  ManifestModel(const ManifestModelOptions& options, device::Kernels& kernels)
      : options_(options), kernels_(kernels) {}
  // A batch norm layer, by its buffers.
  struct NormLayer {
    std::int64_t channels = 0;
    std::unique_ptr<device::Buffer> memory;  // own statistics, then those of all ranks
  };

  Status Allocate(const ModelTensors& tensors, device::Device& device);
  void FindNormLayers();
  Status Synchronize(ModuleContext context, std::size_t layer, bool forward);
  Result<float*> NormMemory(NormLayer& layer, int ranks);
  void Compute(ModuleContext context, const Parameter& param, double share);
  void CountBatch(ModuleContext context);
  void WriteGradient(ModuleContext context, int index);

  ManifestModelOptions options_;
  device::Kernels& kernels_;
  device::Device* device_ = nullptr;
  std::unique_ptr<device::Buffer> memory_;
  std::vector<Parameter> params_;
  std::vector<ModuleBuffer> buffers_;
  std::vector<int> ready_order_;
  std::vector<bool> used_;
  std::vector<NormLayer> norms_;
  std::vector<int> norm_of_param_;  // the layer that a parameter belongs to; -1: none
  std::int64_t total_bytes_ = 0;    // of the parameters
  Pass pass_;
  std::int64_t* input_counter_ = nullptr;
};

// A gradient as it must be on every rank: the mean over `ranks` ranks of the sum of what they
// computed for inputs first_input .. first_input + inputs - 1. A rank adds an integer from 1 to 16
// in the backward pass of an input, exact in every floating-point type.
class ExpectedGradient {
 public:
  ExpectedGradient(int ranks, std::int64_t first_input, std::int64_t inputs, int param,
                   const TensorInfo& info, bool low_rank);
  double At(std::int64_t element) const;

 private:
  bool low_rank_;
  std::int64_t columns_ = 1;
  std::vector<double> tile_;  // low_rank: the factor of each row
  std::vector<double> row_;   // low_rank: the factor of each column
};

// Of a gradient in the host's memory, which has a floating-point type.
double GradientElement(collective::DataType type, const void* data, std::int64_t element);

// Whoever compares more at once tells in between that it lives.
inline constexpr std::int64_t kElementsAtOnce = 1 << 22;

// Half the distance of neighbouring values of a floating-point type, relative.
double RoundingOf(collective::DataType type);

// How far the mean over ranks of the sums of `inputs` gradients, each an integer from 1 to 16, may
// be from the exact one, relative to it. An addition rounds, and so do each rank's division and
// addition in each of `all_reduces`, in any order. 0: all is exact, since every sum has a value of
// its own in a type of such `rounding`.
double RoundingOfMean(int ranks, std::int64_t inputs, std::int64_t all_reduces, double rounding);

// How gradients of a model compare with what they must be.
struct GradientCheck {
  std::int64_t compared = 0;
  std::int64_t wrong = 0;
  std::string first;  // "parameter fc.weight, element 7: 3.25 instead of 3"; empty: none is wrong
};

// Compares every gradient with its ExpectedGradient, gradients having been zeroed before; all ranks
// use all parameters, and sum them up after each input. `tolerance`: largest relative difference
// beyond RoundingOfMean. Reads the device's memory on the host, which must be able to.
// `alive` is called now and then: a model of hundreds of millions takes a while.
GradientCheck CheckMeanGradients(
    ManifestModel& model, int ranks, std::int64_t first_input, std::int64_t inputs,
    double tolerance, const std::function<void()>& alive = [] {});

}  // namespace lockstep::ddp
