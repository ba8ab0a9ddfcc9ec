// Copies and sums as plain loops, and with vectors of which the widest that this processor has is
// chosen when it runs.
#include "bench/floors/kernels.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::bench::floors {
namespace {

void Copy(float* out, const float* a, const float*, std::size_t count) {
  std::memcpy(out, a, count * sizeof(float));
}

void Reduce(float* __restrict out, const float* __restrict a, const float* __restrict b,
            std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}

#if defined(__x86_64__)

void CopyStreaming(float* out, const float* a, const float*, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 4) _mm_stream_ps(out + i, _mm_load_ps(a + i));
  _mm_sfence();
}

void ReduceStreaming(float* out, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 4) {
    _mm_stream_ps(out + i, _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
  }
  _mm_sfence();
}

__attribute__((target("avx2"))) void ReduceAvx2(float* out, const float* a, const float* b,
                                                std::size_t count) {
  for (std::size_t i = 0; i < count; i += 8) {
    _mm256_store_ps(out + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
  }
}

__attribute__((target("avx512f"))) void ReduceAvx512(float* out, const float* a, const float* b,
                                                     std::size_t count) {
  for (std::size_t i = 0; i < count; i += 16) {
    _mm512_store_ps(out + i, _mm512_add_ps(_mm512_load_ps(a + i), _mm512_load_ps(b + i)));
  }
}

#endif

}  // namespace

std::vector<ArrayKernel> CopyKernels() {
  std::vector<ArrayKernel> kernels = {Copy};  // memcpy chooses the vectors itself
#if defined(__x86_64__)
  kernels.push_back(CopyStreaming);
#endif
  return kernels;
}

std::vector<ArrayKernel> ReduceKernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {ReduceAvx512, ReduceStreaming};
  if (__builtin_cpu_supports("avx2")) return {ReduceAvx2, ReduceStreaming};
  return {Reduce, ReduceStreaming};
#else
  return {Reduce};
#endif
}

}  // namespace lockstep::bench::floors
