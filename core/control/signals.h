// The signals of an agent, as something to poll: they interrupt nothing.
#pragma once

#include <csignal>

#include "core/base/fd.h"
#include "core/base/status.h"

namespace lockstep::control {

// Blocks SIGCHLD, SIGTERM, SIGINT, SIGHUP and SIGCONT for the rest of the process's life (an agent
// that has finished must not be ended by a late SIGTERM before its exit code is out). Ignores
// SIGPIPE and SIGXFSZ, and so do the workers, which inherit that, as every Python program does: who
// writes to a rank that is gone, or beyond the file size limit, gets an error that can be told.
class Signals {
 public:
  Signals();

  int fd() const { return fd_.get(); }
  struct Arrived {
    bool child = false;  // a child changed its state
    int end = 0;         // SIGTERM, SIGINT or SIGHUP, or 0
    // `end` is SIGINT, and a terminal sent it: to every process of its foreground group. SIGHUP of
    // a terminal may come to the leader of a session alone.
    bool of_terminal = false;
    // The launcher continued us. Open MPI does so when it begins to end a launch (Ctrl-C, a lost
    // rank), sends SIGTERM a second later, and SIGKILL after another one.
    bool warned = false;
  };
  Arrived Take();
  // Sends `end` on to a child, whose Take() finds it as this one's did.
  static void PassOn(const Arrived& arrived, pid_t child);
  // For who waits to meet the other agents: kTerminated when a signal to end came.
  Status TakeBeforeMeeting();

  static const sigset_t& inherited_mask();  // what a worker gets back

 private:
  Fd fd_;
};

}  // namespace lockstep::control
