// Zeroed memory in huge pages where the kernel grants them: random accesses to gigabytes cost
// half with a hundredth of the address translations.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/check.h"
#include "core/base/status.h"
#include "core/base/units.h"
#include "core/device/host/available_memory.h"

namespace lockstep::datasets::sampler {

template <typename T>
class HugeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  HugeArray() = default;
  HugeArray(HugeArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HugeArray& operator=(HugeArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~HugeArray() {
    if (data_ != nullptr) munmap(data_, size_ * sizeof(T));
  }

  // `what` names the contents in the error. Memory is promised lazily by the kernel, so what is
  // free is looked at first: an error is better than being killed in the middle.
  static Result<HugeArray> Allocate(std::uint64_t size, std::string_view what) {
    HugeArray array;
    if (size == 0) return array;
    const auto available = static_cast<std::uint64_t>(device::host::AvailableMemoryBytes());
    const bool fits = size <= available / sizeof(T);
    void* memory = !fits ? MAP_FAILED
                         : mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return EnvironmentError(
          "{}: {} entries of {} bytes do not fit into the {} that are free; use a machine with "
          "more memory, or fewer samples",
          what, size, sizeof(T), FormatBytes(static_cast<std::int64_t>(available)));
    }
    madvise(memory, size * sizeof(T), MADV_HUGEPAGE);  // advice: without it only slower
    array.data_ = static_cast<T*>(memory);
    array.size_ = size;
    return array;
  }

  // Keeps the first `size` elements and gives the pages behind them back.
  void Shrink(std::uint64_t size) {
    LOCKSTEP_CHECK(size > 0 && size <= size_, "an array shrinks to what it has");
    void* memory = mremap(data_, size_ * sizeof(T), size * sizeof(T), 0);
    LOCKSTEP_CHECK(memory == data_, "shrinking a mapping in place cannot fail");
    size_ = size;
  }

  T* data() { return data_; }
  std::uint64_t size() const { return size_; }
  T& operator[](std::uint64_t i) { return data_[i]; }
  const T& operator[](std::uint64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace lockstep::datasets::sampler
