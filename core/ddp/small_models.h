// Three small models with real arithmetic, which the golden traces of PyTorch were taken with:
//   linear_1_1   Linear(1,1)
//   bn_4_4_2     Linear(4,4), BatchNorm1d(4), Linear(4,2)
//   two_branch   a: Linear(4,3); then b: Linear(3,2) or c: Linear(3,5)
// Their first values are those of torch.manual_seed(0).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/module.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::ddp {

struct SmallModelOptions {
  bool branch_c = false;         // two_branch: c instead of b
  int linear_rows = 2;           // linear_1_1: rows of ones in an input
  bool sync_batch_norm = false;  // bn_4_4_2
  double compute_us = 0;         // time of a forward and backward pass
};

const std::vector<std::string_view>& SmallModelNames();
// kInvalidInput for another name. `kernels` outlives the module. Gradients, and
// what is exchanged for SyncBatchNorm, are in the memory of `device`, which the host has to reach
// too; nullptr: the host's.
Result<std::unique_ptr<Module>> MakeSmallModel(std::string_view name,
                                               const SmallModelOptions& options,
                                               device::Kernels& kernels,
                                               device::Device* device = nullptr);

}  // namespace lockstep::ddp
