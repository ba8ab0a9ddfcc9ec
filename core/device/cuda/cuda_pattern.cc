// Writes and compares known data with this room's kernels, on a stream of its own. Every call waits
// for its end: callers are not in a timed interval. The tally lies on the device and is copied:
// many devices have no atomic operations on the host's memory.
#include "core/device/cuda/cuda_pattern.h"

#include <limits>

#include "core/base/check.h"
#include "core/device/cuda/cuda_call.h"
#include "core/device/cuda/pattern_launch.h"

namespace lockstep::device::cuda {
namespace {

class CudaPatternMemory final : public collective::PatternMemory {
 public:
  CudaPatternMemory() = default;
  ~CudaPatternMemory() override {
    if (tally_ != nullptr) cudaFree(tally_);
    if (tile_ != nullptr) cudaFree(tile_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaPatternMemory(const CudaPatternMemory&) = delete;
  CudaPatternMemory& operator=(const CudaPatternMemory&) = delete;

  Status Open() {
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags, &stream_, cudaStreamNonBlocking);
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMalloc, &tally_, sizeof(*tally_));
    LOCKSTEP_RETURN_IF_CUDA_ERROR(cudaMalloc, &tile_, kMostTile * sizeof(*tile_));
    return OkStatus();
  }

  void Generate(const collective::PatternPiece& piece, void* data) override {
    if (piece.count > 0) Finish(LaunchGenerate(stream_, piece, data));
  }

  void Fill(collective::DataType type, std::uint64_t bits, void* data,
            std::int64_t count) override {
    if (count == 0) return;
    Finish(LaunchFill(stream_, static_cast<int>(collective::SizeOf(type)), bits, data, count));
  }

  collective::PatternDifference Compare(const collective::PatternPiece& piece,
                                        const void* data) override {
    if (piece.count == 0) return {};
    ClearTally();
    Finish(LaunchCompare(stream_, piece, data, tally_));
    return Difference(piece.type, data, piece.count);
  }

  collective::PatternDifference CompareTile(collective::DataType type, const void* data,
                                            std::int64_t count, std::span<const double> tile,
                                            std::int64_t first, double tolerance) override {
    LOCKSTEP_CHECK(!tile.empty() && tile.size() <= kMostTile, "a tile of 1 to 1024 elements");
    if (count == 0) return {};
    ClearTally();
    Finish(cudaMemcpyAsync(tile_, tile.data(), tile.size_bytes(), cudaMemcpyDefault, stream_));
    Finish(LaunchCompareTile(stream_, type, data, count, tile_,
                             static_cast<std::int64_t>(tile.size()), first, tolerance, tally_));
    return Difference(type, data, count);
  }

 private:
  void ClearTally() {
    const PatternTally none = {0, std::numeric_limits<long long>::max()};
    Finish(cudaMemcpyAsync(tally_, &none, sizeof(none), cudaMemcpyDefault, stream_));
  }
  // What the last comparison found.
  collective::PatternDifference Difference(collective::DataType type, const void* data,
                                           std::int64_t count) {
    PatternTally tally = {};
    Finish(cudaMemcpyAsync(&tally, tally_, sizeof(tally), cudaMemcpyDefault, stream_));
    if (failed_) return {count, 0, 0};
    collective::PatternDifference difference;
    difference.wrong = static_cast<std::int64_t>(tally.wrong);
    if (difference.wrong == 0) return difference;
    difference.first = tally.first;
    const std::int64_t size = collective::SizeOf(type);
    const void* got = static_cast<const char*>(data) + difference.first * size;
    static_cast<void>(
        cudaMemcpy(&difference.got, got, static_cast<std::size_t>(size), cudaMemcpyDefault));
    return difference;
  }
  // An error of CUDA's stays: whatever is compared later is wrong.
  void Finish(cudaError_t launched) {
    if (launched != cudaSuccess || cudaStreamSynchronize(stream_) != cudaSuccess) failed_ = true;
  }

  cudaStream_t stream_ = nullptr;
  PatternTally* tally_ = nullptr;  // of the device
  double* tile_ = nullptr;  // of the device
  bool failed_ = false;
};

}  // namespace

Result<std::unique_ptr<collective::PatternMemory>> OpenCudaPatternMemory() {
  auto memory = std::make_unique<CudaPatternMemory>();
  LOCKSTEP_RETURN_IF_ERROR(memory->Open());
  return std::unique_ptr<collective::PatternMemory>(std::move(memory));
}

}  // namespace lockstep::device::cuda
