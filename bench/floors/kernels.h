// The two loops that bandwidth is measured with, in every form that a library might use.
#pragma once

#include <cstddef>
#include <vector>

namespace lockstep::bench::floors {

// out[i] = a[i] + b[i], or out[i] = a[i] (b is not read). Arrays are aligned to 64 bytes and do not
// overlap; `count` is a multiple of 16.
using ArrayKernel = void (*)(float* out, const float* a, const float* b, std::size_t count);

// The forms of a loop that this processor can run, the widest vectors only: first with ordinary
// stores, then with stores that bypass the caches.
std::vector<ArrayKernel> CopyKernels();
std::vector<ArrayKernel> ReduceKernels();

}  // namespace lockstep::bench::floors
