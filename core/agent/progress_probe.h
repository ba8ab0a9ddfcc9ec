// That a process lives although it tells nothing: it is given memory, or wants to compute and does
// not get a processor.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "core/base/clock.h"

namespace lockstep::agent {

class ProgressProbe {
 public:
  // Of the process, in the silence that began at `since`. To be repeated while it lasts: what is
  // known of a silence begins with the first look in it.
  void Look(pid_t pid, Ticks since);

  // When the process was last seen to have been given memory (page faults, proc(5)); 0: never.
  Ticks newest_page_fault() const { return newest_page_fault_; }

  // So long, of the silence that began at `since`, the thread of the process that waited longest
  // was ready to run and did not (run delay, /proc/<pid>/task/<tid>/schedstat).
  double RunDelaySeconds(Ticks since) const { return since == since_ ? run_delay_ns_ * 1e-9 : 0; }

 private:
  using Delays = std::map<pid_t, std::int64_t>;  // of threads, ns

  static Delays DelaysOf(pid_t pid);

  Ticks since_ = 0;  // of the silence
  Ticks newest_page_fault_ = 0;
  std::uint64_t page_faults_ = 0;
  Delays at_first_;  // look in the silence
  double run_delay_ns_ = 0;
};

}  // namespace lockstep::agent
