#include "core/coordinator/terminal.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

namespace lockstep::coordinator {
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

bool StderrIsSeen() { return isatty(STDERR_FILENO) == 1 || LauncherIsOnTerminal(); }

}  // namespace lockstep::coordinator
