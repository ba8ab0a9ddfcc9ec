// Inputs whose exact result is known, written and compared on a GPU at the rate of its memory.
#ifndef LOCKSTEP_CORE_DEVICE_CUDA_CUDA_PATTERN_H_
#define LOCKSTEP_CORE_DEVICE_CUDA_CUDA_PATTERN_H_

#include <memory>

#include "core/base/status.h"
#include "core/collective/pattern_memory.h"

namespace lockstep::device::cuda {

// Of the calling thread's current device. When CUDA fails, what was to be compared counts as wrong.
Result<std::unique_ptr<collective::PatternMemory>> OpenCudaPatternMemory();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_CORE_DEVICE_CUDA_CUDA_PATTERN_H_
