#include "watch/run/janitor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/base/print_stderr.h"

namespace lockstep::watch::run {
namespace {

// Nothing of the watcher's stays open here but standard error, which the watcher has as long, and
// the folder's lock: another watcher would sweep the folder, but say nothing to this one's user.
void KeepOnly(int end, int lock) {
  constexpr int kLockHere = STDERR_FILENO + 1;
  dup2(end, STDIN_FILENO);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
  dup2(lock, kLockHere);
  close_range(lock >= 0 ? kLockHere + 1 : kLockHere, ~0U, 0);
}

}  // namespace

void LeaveJanitor(const Folder& folder) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const pid_t process = fork();
  if (process != 0) {
    close(ends[0]);  // the other end stays open as long as this process lives
    if (process < 0) close(ends[1]);
    return;
  }
  setsid();  // what a terminal sends to the watcher is not for this one
  prctl(PR_SET_NAME, "lockstep-janitor");
  KeepOnly(ends[0], folder.lock());
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  std::error_code error;
  if (std::filesystem::exists(folder.path(), error)) {
    folder.Abandon();
    PrintStderr(
        "lockstep watch: nothing is watched any more: the watcher was ended; the program "
        "goes on\n");
    std::fflush(stderr);
  }
  _exit(0);
}

}  // namespace lockstep::watch::run
