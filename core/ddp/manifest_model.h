// A module with the tensors of a real model and synthetic gradients whose values are known: what
// the gradient of any element must be after any iteration can be computed without the ranks.
#ifndef LOCKSTEP_CORE_DDP_MANIFEST_MODEL_H_
#define LOCKSTEP_CORE_DDP_MANIFEST_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/module.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep {

// A model as datasets/ describes it.
struct ModelTensors {
  std::vector<TensorInfo> params;  // in order of registration; floating-point types
  std::vector<int> ready_order;    // in which gradients become ready: a permutation
  std::vector<TensorInfo> buffers;
};

struct ManifestModelOptions {
  int rank = 0;
  double compute_us = 0;         // of forward and backward; 0: what the memory traffic takes
  bool sync_batch_norm = false;  // buffers *.running_mean name the layers
  bool low_rank = false;         // gradients of matrices have rank 1 (for PowerSGD)
  std::vector<int> unused;       // parameters that this rank's graph does not reach
};

// What a rank adds to element `element` of parameter `param` in the backward pass of `input`: a
// small integer, exact in every floating-point type.
double SyntheticGradient(int rank, std::int64_t input, int param, const TensorInfo& info,
                         std::int64_t element, bool low_rank);

class ManifestModel : public Module {
 public:
  // Allocates parameters, gradients and buffers on the device. All outlive the model.
  static Result<std::unique_ptr<ManifestModel>> Make(const ModelTensors& tensors,
                                                     const ManifestModelOptions& options,
                                                     Device& device, Kernels& kernels);
  // For the next forward pass.
  virtual void set_compute_us(double compute_us) = 0;
  virtual const ManifestModelOptions& options() const = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_DDP_MANIFEST_MODEL_H_
