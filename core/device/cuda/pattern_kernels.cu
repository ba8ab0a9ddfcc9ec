// Writes and compares patterns on the device. The element's value comes from
// core/collective/pattern_values.h, the same source that the host compiles, so both give the same
// bits. A comparison adds to one tally by atomics.
#include "core/device/cuda/kernel_parts.h"
#include "core/device/cuda/pattern_launch.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kMostBlocks = 8192;

template <collective::DataType kType>
__global__ void Generate(collective::PatternPiece piece,
                         typename collective::PatternEncoding<kType>::Word* data) {
  for (std::int64_t i = FirstItem(); i < piece.count; i += ItemStep()) {
    data[i] = collective::PatternElement<kType>(piece, piece.begin + i);
  }
}

template <typename Word>
__global__ void Fill(Word bits, Word* data, std::int64_t count) {
  for (std::int64_t i = FirstItem(); i < count; i += ItemStep()) data[i] = bits;
}

// Floating-point numbers are compared by their bits: -0 is not 0, and a NaN equals itself.
template <typename Word>
__device__ bool SameBits(Word a, Word b) {
  unsigned char first[sizeof(Word)];
  unsigned char second[sizeof(Word)];
  memcpy(first, &a, sizeof(Word));
  memcpy(second, &b, sizeof(Word));
  bool same = true;
  for (int i = 0; i < static_cast<int>(sizeof(Word)); ++i) same = same && first[i] == second[i];
  return same;
}

template <collective::DataType kType>
__global__ void Compare(collective::PatternPiece piece,
                        const typename collective::PatternEncoding<kType>::Word* data,
                        PatternTally* tally) {
  for (std::int64_t i = FirstItem(); i < piece.count; i += ItemStep()) {
    if (SameBits(data[i], collective::PatternElement<kType>(piece, piece.begin + i))) continue;
    atomicAdd(&tally->wrong, 1ull);
    atomicMin(&tally->first, static_cast<long long>(i));
  }
}

template <typename Word>
__global__ void CompareTile(const Word* data, std::int64_t count, const double* tile,
                            std::int64_t tile_length, std::int64_t first, double tolerance,
                            PatternTally* tally) {
  for (std::int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const double expected = tile[(first + i) % tile_length];
    const double value = Widen(data[i]);
    // Not so of a NaN.
    if (fabs(value - expected) <= tolerance * fabs(expected)) continue;
    atomicAdd(&tally->wrong, 1ull);
    atomicMin(&tally->first, static_cast<long long>(i));
  }
}

}  // namespace

cudaError_t LaunchCompareTile(cudaStream_t stream, collective::DataType type, const void* data,
                              std::int64_t count, const double* tile, std::int64_t tile_length,
                              std::int64_t first, double tolerance, PatternTally* tally) {
  return WithWord(type, [&]<typename Word>(Word*) {
    CompareTile<<<BlocksFor(count, kMostBlocks), kThreads, 0, stream>>>(
        static_cast<const Word*>(data), count, tile, tile_length, first, tolerance, tally);
    return cudaGetLastError();
  });
}

cudaError_t LaunchGenerate(cudaStream_t stream, const collective::PatternPiece& piece, void* data) {
  collective::WithPatternType(piece.type, [&]<collective::DataType kType>() {
    using Word = typename collective::PatternEncoding<kType>::Word;
    Generate<kType><<<BlocksFor(piece.count, kMostBlocks), kThreads, 0, stream>>>(
        piece, static_cast<Word*>(data));
  });
  return cudaGetLastError();
}

cudaError_t LaunchFill(cudaStream_t stream, int bytes_an_element, std::uint64_t bits, void* data,
                       std::int64_t count) {
  const auto fill = [&]<typename Word>(Word* words) {
    Fill<<<BlocksFor(count, kMostBlocks), kThreads, 0, stream>>>(static_cast<Word>(bits), words,
                                                                 count);
    return cudaGetLastError();
  };
  switch (bytes_an_element) {
    case 1:
      return fill(static_cast<std::uint8_t*>(data));
    case 2:
      return fill(static_cast<std::uint16_t*>(data));
    case 4:
      return fill(static_cast<std::uint32_t*>(data));
    default:
      return fill(static_cast<std::uint64_t*>(data));
  }
}

cudaError_t LaunchCompare(cudaStream_t stream, const collective::PatternPiece& piece,
                          const void* data, PatternTally* tally) {
  collective::WithPatternType(piece.type, [&]<collective::DataType kType>() {
    using Word = typename collective::PatternEncoding<kType>::Word;
    Compare<kType><<<BlocksFor(piece.count, kMostBlocks), kThreads, 0, stream>>>(
        piece, static_cast<const Word*>(data), tally);
  });
  return cudaGetLastError();
}

}  // namespace lockstep::device::cuda
