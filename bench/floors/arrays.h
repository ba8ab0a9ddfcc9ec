// What a thread measures with: its processors, and arrays of its own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/floors/kernels.h"

namespace lockstep::bench::floors {

// False for processors that there are not.
bool BindThisThread(const std::vector<int>& cpus);

// Whether there are as many processors as ranks.
bool EachHasAProcessor(const std::vector<std::vector<int>>& cpus_of_ranks);

// Three arrays of floats, touched by the thread that will use them.
class Arrays {
 public:
  explicit Arrays(std::int64_t bytes_each);
  bool ok() const { return arrays_[0] && arrays_[1] && arrays_[2]; }
  void Run(ArrayKernel kernel, std::int64_t bytes) const {
    kernel(arrays_[2].get(), arrays_[0].get(), arrays_[1].get(),
           static_cast<std::size_t>(bytes) / sizeof(float));
  }
  // Writes the first array, as far as that.
  void Write(std::int64_t bytes);
  // Copies another's first array to the third.
  void CopyFrom(const Arrays& other, ArrayKernel copy, std::int64_t bytes) const {
    copy(arrays_[2].get(), other.arrays_[0].get(), nullptr,
         static_cast<std::size_t>(bytes) / sizeof(float));
  }

 private:
  struct Free {
    void operator()(float* array) const { std::free(array); }
  };
  std::unique_ptr<float[], Free> arrays_[3];
};

}  // namespace lockstep::bench::floors
