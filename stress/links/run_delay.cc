// Reads the second number of /proc/<pid>/task/<tid>/schedstat of every thread. A thread that comes
// is found at the next listing, and then counts with all that it has waited.
#include "stress/links/run_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace lockstep {
namespace {

// Listing costs more than reading all: so often only.
constexpr int kAsksPerListing = 16;

}  // namespace

RunDelay::RunDelay(pid_t process, pid_t thread) : process_(process), all_(false) { Open(thread); }

double RunDelay::Seconds() {
  if (all_ && asked_++ % kAsksPerListing == 0) FindThreads();
  std::int64_t total_ns = ended_ns_;
  for (auto thread = threads_.begin(); thread != threads_.end();) {
    char text[96] = {};
    std::int64_t ran_ns = 0, waited_ns = 0;
    const ssize_t n = pread(thread->second.file.get(), text, sizeof text - 1, 0);
    const bool there = n > 0 && std::sscanf(text, "%" SCNd64 " %" SCNd64, &ran_ns, &waited_ns) == 2;
    if (there) thread->second.waited_ns = waited_ns;
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
  DIR* const directory = opendir(fmt::format("/proc/{}/task", process_).c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    const pid_t thread = std::atoi(entry->d_name);
    if (thread > 0 && !threads_.contains(thread)) Open(thread);
  }
  closedir(directory);
}

void RunDelay::Open(pid_t thread) {
  Fd file(open(fmt::format("/proc/{}/task/{}/schedstat", process_, thread).c_str(),
               O_RDONLY | O_CLOEXEC));
  if (file.valid()) threads_[thread].file = std::move(file);
}

}  // namespace lockstep
