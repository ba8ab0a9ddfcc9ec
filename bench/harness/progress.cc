#include "bench/harness/progress.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/base/clock.h"

namespace lockstep {
namespace {

constexpr unsigned kPtyMajors[] = {4, 136};  // tty and Unix98 pty devices (Linux devices.txt)

// mpirun gives its children pipes for stderr whatever its own stderr is, so the launcher's is the
// one that a person may look at.
bool LauncherIsOnTerminal() {
  struct stat status;
  const std::string path = fmt::format("/proc/{}/fd/2", getppid());
  if (stat(path.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return false;
  for (const unsigned terminal : kPtyMajors) {
    if (major(status.st_rdev) == terminal) return true;
  }
  return false;
}

}  // namespace

Progress::Progress(bool wanted)
    : on_terminal_(wanted && (isatty(STDERR_FILENO) == 1 || LauncherIsOnTerminal())) {}

void Progress::Update(int repetition, std::size_t cases_done, std::size_t cases,
                      double seconds_to_go) {
  if (!on_terminal_) return;
  const std::int64_t now = MonotonicNs();
  if (now - last_ns_ < 100'000'000) return;
  last_ns_ = now;
  const std::string sweep = repetition > 0 ? fmt::format("repetition {}, ", repetition + 1) : "";
  const std::string line = fmt::format("\r{}{} of {} cases measured, about {:.0f} s left\x1b[K",
                                       sweep, cases_done, cases, seconds_to_go);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace lockstep
