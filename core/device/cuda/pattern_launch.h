// The kernels of cuda_pattern. Internal to this room.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/collective/pattern_memory.h"

namespace lockstep::device::cuda {

// Of the device; zeroed, with `first` at INT64_MAX, before a comparison.
struct PatternTally {
  unsigned long long wrong;
  long long first;
};

cudaError_t LaunchGenerate(cudaStream_t stream, const collective::PatternPiece& piece, void* data);
cudaError_t LaunchFill(cudaStream_t stream, int bytes_an_element, std::uint64_t bits, void* data,
                       std::int64_t count);
// As PatternMemory::CompareTile; `tile` is of the device's memory.
cudaError_t LaunchCompareTile(cudaStream_t stream, collective::DataType type, const void* data,
                              std::int64_t count, const double* tile, std::int64_t tile_length,
                              std::int64_t first, double tolerance, PatternTally* tally);
cudaError_t LaunchCompare(cudaStream_t stream, const collective::PatternPiece& piece,
                          const void* data, PatternTally* tally);

}  // namespace lockstep::device::cuda
