#include "bench/harness/run_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

namespace lockstep {

OwnRunDelay::OwnRunDelay() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    Fd file(open((entry.path() / "schedstat").c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid()) threads_.push_back(std::move(file));
  }
}

OwnRunDelay::Count OwnRunDelay::Now() const {
  Count count;
  for (const Fd& thread : threads_) {
    std::array<char, 96> text{};
    if (pread(thread.get(), text.data(), text.size() - 1, 0) <= 0) continue;  // it has ended
    long long ran = 0, waited = 0, runs = 0;
    if (std::sscanf(text.data(), "%lld %lld %lld", &ran, &waited, &runs) != 3) continue;
    count.waited_ns += waited;
    count.runs += runs;
  }
  return count;
}

double WaitNs(const OwnRunDelay::Count& from, const OwnRunDelay::Count& to) {
  if (to.runs == 0) return std::numeric_limits<double>::quiet_NaN();
  // A thread that ended takes its count along.
  return static_cast<double>(std::max<std::int64_t>(to.waited_ns - from.waited_ns, 0));
}

}  // namespace lockstep
