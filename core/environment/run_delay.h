// How long threads were ready to run and had no processor (run delay, sched-stats of the kernel).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>

namespace lockstep::environment {

// The sum over the threads of a process, as a total that only grows. Asking costs about a
// microsecond a thread: files stay open.
class RunDelay {
 public:
  explicit RunDelay(pid_t process);
  // Of one thread alone.
  RunDelay(pid_t process, pid_t thread);

  // Threads that came since; they count with all that they have waited.
  void FindThreads();
  double Seconds();
  // Whether the kernel tells it (CONFIG_SCHED_INFO), as far as this was asked.
  bool known() const { return known_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct Thread {
    std::unique_ptr<std::FILE, Close> file;
    std::int64_t waited_ns = 0;  // when it was read last
  };
  void Open(pid_t thread);

  pid_t process_;
  bool known_ = false;
  std::map<pid_t, Thread> threads_;
  std::int64_t ended_ns_ = 0;  // of threads that are gone
};

}  // namespace lockstep::environment
