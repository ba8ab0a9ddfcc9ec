// The signals of an agent, as something to poll: they interrupt nothing.
#ifndef LOCKSTEP_CORE_LAUNCH_SIGNALS_H_
#define LOCKSTEP_CORE_LAUNCH_SIGNALS_H_

#include <csignal>

#include "core/launch/fd.h"

namespace lockstep {

// Blocks SIGCHLD, SIGTERM, SIGINT and SIGHUP for the rest of the process's life (an agent that has
// finished must not be ended by a late SIGTERM before its exit code is out) and ignores SIGPIPE.
class Signals {
 public:
  Signals();

  int fd() const { return fd_.get(); }
  struct Arrived {
    bool child = false;  // a child changed its state
    int end = 0;         // SIGTERM, SIGINT or SIGHUP, or 0
  };
  Arrived Take();

  // What a worker gets back: the mask, and whether SIGPIPE is to be default again.
  static const sigset_t& inherited_mask();
  static bool inherited_sigpipe_default();

 private:
  Fd fd_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_LAUNCH_SIGNALS_H_
