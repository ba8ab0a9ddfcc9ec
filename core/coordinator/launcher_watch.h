// The launcher's daemon of this host: whoever loses it is an orphan on its host, whom nobody will
// end any more, and ends itself. The end of a wrapper between it and us (a shell, timeout) is none.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "core/base/fd.h"
#include "core/control/ancestors.h"
#include "core/control/context.h"
#include "core/control/pytorch.h"

namespace lockstep::coordinator {

class LauncherWatch {
 public:
  // Watches nothing where no launcher started us, or nobody knows which process that is. Not the
  // signal of prctl(2): that comes when the thread ends which started us, and launchers start ranks
  // in threads of short life.
  explicit LauncherWatch(const control::LaunchContext& context) {
    if (context.launcher == "none" || context.launcher == control::kByHand) return;
    const std::vector<control::Ancestor> ancestors = control::Ancestors();
    const std::optional<pid_t> launcher = control::LauncherAmong(ancestors, context.settings);
    bool ended = false;
    if (launcher) {
      fd_.Reset(static_cast<int>(syscall(SYS_pidfd_open, *launcher, 0)));
      ended = !fd_.valid() && errno == ESRCH;
    }
    // A launcher that ended before all this left us another parent. torchrun reads no output.
    const bool wrapped =
        !ancestors.empty() && control::Inherited(ancestors.front(), context.settings);
    const bool reads = context.launcher != control::kTorchrun;
    ended = ended || (reads && !wrapped && OutputsAreUnread());
    if (ended) fd_.Reset(eventfd(1, EFD_CLOEXEC));
  }
  int fd() const { return fd_.get(); }  // readable when it is gone; -1: not watched
  // It is gone, and with it who read our output: printing must not end us in turn.
  void OnGone() {
    fd_.Reset();
    const Fd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!nowhere.valid()) return;
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere.get(), output);
  }

 private:
  // A launcher reads what its ranks print, and does so to its end. A wrapper may pipe it elsewhere.
  static bool OutputsAreUnread() {
    pollfd outputs[] = {{STDOUT_FILENO, 0, 0}, {STDERR_FILENO, 0, 0}};
    poll(outputs, 2, 0);
    constexpr int kUnread = POLLERR | POLLHUP;
    return (outputs[0].revents & kUnread) != 0 && (outputs[1].revents & kUnread) != 0;
  }

  Fd fd_;
};

}  // namespace lockstep::coordinator
