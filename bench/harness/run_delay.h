// How long this process waited for a processor: a partner that waits makes a good link look slow.
#ifndef LOCKSTEP_BENCH_HARNESS_RUN_DELAY_H_
#define LOCKSTEP_BENCH_HARNESS_RUN_DELAY_H_

#include <cstdint>
#include <vector>

#include "core/launch/fd.h"

namespace lockstep {

class OwnRunDelay {
 public:
  // What the kernel counts of a process's threads, all together.
  struct Count {
    std::int64_t waited_ns = 0;  // ready to run, and no processor was free
    std::int64_t runs = 0;       // times that one of them got a processor
  };

  // Of the threads that this process has now; asking costs some microseconds.
  OwnRunDelay();
  Count Now() const;

 private:
  std::vector<Fd> threads_;
};

// What was waited between two moments, all threads together: whatever took longer by waits took
// longer by no more than that. NaN: the kernel does not tell (CONFIG_SCHED_INFO).
double WaitNs(const OwnRunDelay::Count& from, const OwnRunDelay::Count& to);

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_RUN_DELAY_H_
