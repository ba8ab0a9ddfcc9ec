// How the processors of this host's ranks reach each other, asked between the rounds. On a virtual
// machine that changes while a run lasts: processors move between the threads of a core and other
// cores. A case and its floor of the same moment change together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/floors/floors.h"

namespace lockstep::bench::floors {

// A thread a local rank, bound to its processors. All sleep between two calls of Measure.
class Reference {
 public:
  // Arrays are handed over up to the size that messages of `largest_bytes` need.
  Reference(std::vector<std::vector<int>> cpus_of_local_ranks, std::int64_t largest_bytes);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  // The ranks must be asleep. Takes one to four milliseconds for messages below 16 MiB, at most
  // about 20; for larger ones up to 30, at most about 60. What could not be measured is NaN: all of
  // it for one rank, many, or more ranks than processors.
  Crossing Measure();

 private:
  class Threads;
  std::unique_ptr<Threads> threads_;  // none: nothing can be measured
};

}  // namespace lockstep::bench::floors
