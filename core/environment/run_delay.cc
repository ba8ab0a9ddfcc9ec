// Reads /proc/<pid>/task/<tid>/schedstat of every thread: how long it ran, how long it waited, and
// how often it got a processor. One that got none was never counted by the kernel.
#include "core/environment/run_delay.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cinttypes>

#include "core/base/process_stat.h"

namespace lockstep::environment {

RunDelay::RunDelay(pid_t process) : process_(process) { FindThreads(); }

RunDelay::RunDelay(pid_t process, pid_t thread) : process_(process) { Open(thread); }

double RunDelay::Seconds() {
  std::int64_t total_ns = ended_ns_;
  for (auto thread = threads_.begin(); thread != threads_.end();) {
    char text[96] = {};
    std::int64_t ran_ns = 0, waited_ns = 0, runs = 0;
    const ssize_t n = pread(fileno(thread->second.file.get()), text, sizeof text - 1, 0);
    const bool there = n > 0 && std::sscanf(text, "%" SCNd64 " %" SCNd64 " %" SCNd64, &ran_ns,
                                            &waited_ns, &runs) == 3;
    if (there) thread->second.waited_ns = waited_ns;
    known_ = known_ || runs > 0;
    total_ns += thread->second.waited_ns;
    if (there) {
      ++thread;
    } else {
      ended_ns_ += thread->second.waited_ns;
      thread = threads_.erase(thread);
    }
  }
  return static_cast<double>(total_ns) * 1e-9;
}

void RunDelay::FindThreads() {
  for (const pid_t thread : NumbersIn(fmt::format("/proc/{}/task", process_))) {
    if (!threads_.contains(thread)) Open(thread);
  }
}

void RunDelay::Open(pid_t thread) {
  const std::string path = fmt::format("/proc/{}/task/{}/schedstat", process_, thread);
  if (std::FILE* const file = std::fopen(path.c_str(), "re")) threads_[thread].file.reset(file);
}

}  // namespace lockstep::environment
