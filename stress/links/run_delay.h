// How long threads were ready to run and had no processor (run delay, sched-stats of the kernel).
#ifndef LOCKSTEP_STRESS_LINKS_RUN_DELAY_H_
#define LOCKSTEP_STRESS_LINKS_RUN_DELAY_H_

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "core/launch/fd.h"

namespace lockstep {

// The sum over the threads of a process, as a total that only grows. Cheap enough to be asked
// every few milliseconds: files stay open.
class RunDelay {
 public:
  explicit RunDelay(pid_t process) : process_(process) {}
  // Of one thread alone.
  RunDelay(pid_t process, pid_t thread);

  double Seconds();

 private:
  struct Thread {
    Fd file;
    std::int64_t waited_ns = 0;  // when it was read last
  };
  void FindThreads();
  void Open(pid_t thread);

  pid_t process_;
  bool all_ = true;
  int asked_ = 0;
  std::map<pid_t, Thread> threads_;
  std::int64_t ended_ns_ = 0;  // of threads that are gone
};

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_LINKS_RUN_DELAY_H_
