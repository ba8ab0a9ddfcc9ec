#include "bench/floors/arrays.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>

namespace lockstep::bench::floors {
namespace {

constexpr std::size_t kHugePageBytes = 2 << 20;

}  // namespace

bool BindThisThread(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
    CPU_SET(static_cast<unsigned>(cpu), &set);
  }
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

bool EachHasAProcessor(const std::vector<std::vector<int>>& cpus_of_ranks) {
  std::set<int> all;
  for (const auto& cpus : cpus_of_ranks) all.insert(cpus.begin(), cpus.end());
  return all.size() >= cpus_of_ranks.size();
}

Arrays::Arrays(std::int64_t bytes_each) {
  for (auto& array : arrays_) {
    const auto bytes = static_cast<std::size_t>(bytes_each);
    void* memory = nullptr;  // aligned_alloc would take whole huge pages only
    if (posix_memalign(&memory, kHugePageBytes, bytes) != 0) continue;
    array.reset(static_cast<float*>(memory));
    // Faulting in 4 KiB pages would take longer than the measurement; where the kernel refuses,
    // it just does take longer.
    madvise(array.get(), bytes, MADV_HUGEPAGE);
    std::fill_n(array.get(), bytes / sizeof(float), 1.0f);
  }
}

void Arrays::Write(std::int64_t bytes) {
  std::fill_n(arrays_[0].get(), static_cast<std::size_t>(bytes) / sizeof(float), 1.0f);
}

}  // namespace lockstep::bench::floors
