// Inputs whose exact result is known, written and compared on a GPU at the rate of its memory.
#pragma once

#include <memory>

#include "core/base/status.h"
#include "core/collective/pattern_memory.h"

namespace lockstep::device::cuda {

// Of the calling thread's current device. When CUDA fails, what was to be compared counts as wrong.
Result<std::unique_ptr<collective::PatternMemory>> OpenCudaPatternMemory();

}  // namespace lockstep::device::cuda
