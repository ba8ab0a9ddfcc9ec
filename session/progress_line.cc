// A line on stderr, if a person looks at it. mpirun hands its children a pipe: what its own stderr
// is decides.
#include "session/progress_line.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>

#include "core/base/clock.h"
#include "core/base/print_stderr.h"

namespace lockstep::session {
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

bool StderrIsSeen() { return isatty(STDERR_FILENO) == 1 || LauncherIsOnTerminal(); }

}  // namespace

ProgressLine::ProgressLine(bool wanted) : wanted_(wanted), on_terminal_(wanted && StderrIsSeen()) {}

void ProgressLine::Show(const std::string& line) {
  if (!on_terminal_) return;
  PrintStderr("\r{}\x1b[K", line);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::ShowStep(const std::string& line, const std::string& program) {
  if (on_terminal_) return Show(line);
  Announce(program + line);
}

void ProgressLine::ShowIfDue(const std::string& line) {
  const std::int64_t now = MonotonicNs();
  if (now - last_ns_ < 100'000'000) return;
  last_ns_ = now;
  Show(line);
}

void ProgressLine::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

void ProgressLine::Announce(const std::string& line) {
  if (wanted_) Notice(line);
}

void ProgressLine::Notice(const std::string& line) {
  Clear();
  PrintStderr("{}\n", line);
  std::fflush(stderr);
}

}  // namespace lockstep::session
