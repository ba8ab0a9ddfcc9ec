// The kernels behind launch.h: elementwise arithmetic, tiles, reads and products of matrices. Types
// of 16 bits are computed in float and rounded once, as PyTorch does. Grids have at most 4,096
// blocks and stride over the rest.
#include "core/device/cuda/kernel_parts.h"
#include "core/device/cuda/launch.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kMostBlocks = 4096;
constexpr int kSquare = 32;  // of matrices, that a block multiplies

__device__ void Narrow(float value, __half* to) { *to = __float2half_rn(value); }
__device__ void Narrow(float value, __nv_bfloat16* to) { *to = __float2bfloat16_rn(value); }
__device__ void Narrow(float value, float* to) { *to = value; }
__device__ void Narrow(double value, double* to) { *to = value; }
__device__ void Narrow(double value, float* to) { *to = static_cast<float>(value); }
__device__ void Narrow(float value, double* to) { *to = value; }
__device__ void Narrow(double value, __half* to) { *to = __double2half(value); }
__device__ void Narrow(double value, __nv_bfloat16* to) { *to = __double2bfloat16(value); }

template <CudaArithmetic kArithmetic, typename Word>
__device__ Word Computed(Word to, Word from, double operand) {
  using Wide = decltype(Widen(Word()));
  const auto factor = static_cast<Wide>(operand);
  const Wide value = Widen(from);
  Word result;
  if constexpr (kArithmetic == CudaArithmetic::kScale) Narrow(value * factor, &result);
  if constexpr (kArithmetic == CudaArithmetic::kDivide) Narrow(value / factor, &result);
  if constexpr (kArithmetic == CudaArithmetic::kAdd) Narrow(Widen(to) + value, &result);
  return result;
}

template <typename Word>
struct alignas(sizeof(uint4)) Pack {
  static constexpr int kWords = sizeof(uint4) / sizeof(Word);
  Word words[kWords];
};

// Sixteen bytes a thread and step, as the memory is fastest; one by one what is no whole pack.
template <CudaArithmetic kArithmetic, typename Word>
__global__ void Elementwise(Word* to, const Word* from, std::int64_t packs, std::int64_t count,
                            double operand) {
  auto* const packs_to = reinterpret_cast<Pack<Word>*>(to);
  const auto* const packs_from = reinterpret_cast<const Pack<Word>*>(from);
  for (std::int64_t i = FirstItem(); i < packs; i += ItemStep()) {
    const Pack<Word> in = packs_from[i];
    Pack<Word> out = kArithmetic == CudaArithmetic::kAdd ? packs_to[i] : in;
    for (int k = 0; k < Pack<Word>::kWords; ++k) {
      out.words[k] = Computed<kArithmetic>(out.words[k], in.words[k], operand);
    }
    packs_to[i] = out;
  }
  for (std::int64_t i = packs * Pack<Word>::kWords + FirstItem(); i < count; i += ItemStep()) {
    to[i] = Computed<kArithmetic>(to[i], from[i], operand);
  }
}

template <CudaArithmetic kArithmetic, typename Word>
cudaError_t LaunchComputed(cudaStream_t stream, Word* to, const Word* from, std::int64_t count,
                           double operand) {
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) %
          sizeof(uint4) == 0;
  const std::int64_t packs = aligned ? count / Pack<Word>::kWords : 0;
  const std::int64_t items = aligned ? packs + Pack<Word>::kWords : count;
  Elementwise<kArithmetic>
      <<<BlocksFor(items, kMostBlocks), kThreads, 0, stream>>>(to, from, packs, count, operand);
  return cudaGetLastError();
}

template <typename To, typename From>
__global__ void Convert(To* to, const From* from, std::int64_t count) {
  for (std::int64_t i = FirstItem(); i < count; i += ItemStep()) {
    Narrow(Widen(from[i]), &to[i]);
  }
}

// Every block makes the tile for itself, in its shared memory.
template <typename Word>
__global__ void WriteTile(TileSource source, Word* to, std::int64_t count, bool add) {
  using Wide = decltype(Widen(Word()));
  __shared__ float tile[kTile];
  const std::int64_t input = source.input_at == nullptr ? source.input : *source.input_at;
  const std::uint64_t key = TileKey(source.rank, input, source.param);
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += static_cast<int>(blockDim.x)) {
    tile[i] = TileValue(key, i);
  }
  __syncthreads();
  for (std::int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const Wide value = tile[i % kTile];
    Narrow(add ? Widen(to[i]) + value : value, &to[i]);
  }
}

__global__ void Increment(std::int64_t* number) { ++*number; }

__device__ unsigned sink;

// Sixteen bytes a thread and step; the sum is stored only if it has a value that none has.
__global__ void Read(const uint4* from, std::int64_t items, std::int64_t total) {
  unsigned sum = 0;
  for (std::int64_t i = FirstItem(); i < total; i += ItemStep()) {
    const uint4 value = __ldcg(from + i % items);
    sum += (value.x | 1) + (value.y & value.z & value.w & 1);
  }
  if (sum == 0x80000001u) sink = sum;
}

// A tile of the product a block. A product takes as many `steps` along the inner dimension as it
// has tiles; with more of them they begin anew, so that a launch has a length that is chosen.
template <typename Word>
__global__ void MatrixProduct(Word* out, const Word* a, const Word* b, std::int64_t rows,
                              std::int64_t steps) {
  using Wide = decltype(Widen(Word()));
  __shared__ Wide tile_a[kSquare][kSquare];
  __shared__ Wide tile_b[kSquare][kSquare];
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.y) * kSquare + threadIdx.y;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kSquare + threadIdx.x;
  Wide sum = 0;
  std::int64_t begin = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t left = begin + threadIdx.x;
    const std::int64_t upper = begin + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] =
        row < rows && left < rows ? Widen(a[row * rows + left]) : Wide(0);
    tile_b[threadIdx.y][threadIdx.x] =
        upper < rows && column < rows ? Widen(b[upper * rows + column]) : Wide(0);
    __syncthreads();
    for (int i = 0; i < kSquare; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
    begin = begin + kSquare < rows ? begin + kSquare : 0;
  }
  if (row < rows && column < rows) Narrow(sum, &out[row * rows + column]);
}

}  // namespace

cudaError_t LaunchElementwise(cudaStream_t stream, CudaArithmetic arithmetic,
                              collective::DataType type, void* to, const void* from,
                              std::int64_t count, double operand) {
  return WithWord(type, [&]<typename Word>(Word*) {
    auto* const words = static_cast<Word*>(to);
    const auto* const others = static_cast<const Word*>(from);
    switch (arithmetic) {
      case CudaArithmetic::kScale:
        return LaunchComputed<CudaArithmetic::kScale>(stream, words, others, count, operand);
      case CudaArithmetic::kDivide:
        return LaunchComputed<CudaArithmetic::kDivide>(stream, words, others, count, operand);
      case CudaArithmetic::kAdd:
        return LaunchComputed<CudaArithmetic::kAdd>(stream, words, others, count, operand);
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t LaunchConvert(cudaStream_t stream, collective::DataType to_type, void* to,
                          collective::DataType from_type, const void* from, std::int64_t count) {
  return WithWord(to_type, [&]<typename To>(To*) {
    return WithWord(from_type, [&]<typename From>(From*) {
      Convert<<<BlocksFor(count, kMostBlocks), kThreads, 0, stream>>>(
          static_cast<To*>(to), static_cast<const From*>(from), count);
      return cudaGetLastError();
    });
  });
}

cudaError_t LaunchWriteTile(cudaStream_t stream, collective::DataType type, void* to,
                            std::int64_t count, const TileSource& source, bool add) {
  return WithWord(type, [&]<typename Word>(Word*) {
    WriteTile<<<BlocksFor(count, kMostBlocks), kThreads, 0, stream>>>(
        source, static_cast<Word*>(to), count, add);
    return cudaGetLastError();
  });
}

cudaError_t LaunchIncrement(cudaStream_t stream, std::int64_t* number) {
  Increment<<<1, 1, 0, stream>>>(number);
  return cudaGetLastError();
}

cudaError_t LaunchRead(cudaStream_t stream, const void* from, std::int64_t bytes,
                       std::int64_t total) {
  const auto size = static_cast<std::int64_t>(sizeof(uint4));
  if (bytes < size) return cudaSuccess;  // nothing that could be measured
  Read<<<BlocksFor(total / size, kMostBlocks), kThreads, 0, stream>>>(
      static_cast<const uint4*>(from), bytes / size, total / size);
  return cudaGetLastError();
}

std::int64_t MatrixProductSteps(std::int64_t rows) { return (rows + kSquare - 1) / kSquare; }

cudaError_t LaunchMatrixProduct(cudaStream_t stream, collective::DataType type, void* out,
                                const void* a, const void* b, std::int64_t rows,
                                std::int64_t steps) {
  const auto blocks = static_cast<unsigned>(MatrixProductSteps(rows));
  return WithWord(type, [&]<typename Word>(Word*) {
    MatrixProduct<<<dim3(blocks, blocks), dim3(kSquare, kSquare), 0, stream>>>(
        static_cast<Word*>(out), static_cast<const Word*>(a), static_cast<const Word*>(b), rows,
        steps);
    return cudaGetLastError();
  });
}

}  // namespace lockstep::device::cuda
