// This program again, as a child process with a channel to it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/channel.h"
#include "core/control/facts.h"
#include "core/journal/journal.h"
#include "core/verdict/judge.h"

namespace lockstep::agent {

struct ChildChange {
  enum class Kind { kExited, kSignalled, kStopped, kContinued };
  Kind kind = Kind::kExited;
  int value = 0;  // exit code or signal
};

class Child {
 public:
  // Starts /proc/self/exe with this process's arguments and environment plus the role. It leads a
  // process group of its own, so signals to the agent's group do not reach it; its standard output
  // is the agent's standard error, its standard input /dev/null. The agent's Signals exist already.
  // `inherited`: descriptors that it gets, under the same numbers.
  // `environment`: "NAME=value", in place of the agent's own; of two the later holds.
  static Result<std::unique_ptr<Child>> Spawn(control::ChildRole role,
                                              const std::vector<int>& inherited = {},
                                              const std::vector<std::string>& environment = {});
  // Ends what still runs of it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  control::Channel& channel() { return channel_; }
  bool gone() const { return gone_; }  // reaped
  // The next change of its state that has not been told yet. Never waits. When it left, its whole
  // process group is killed before it is reaped, so that nothing it started stays behind.
  std::optional<ChildChange> Poll();
  // SIGKILL to its process group.
  void Kill();
  // Sleeps until it has left (not reaped yet: Poll() does that); false at the deadline.
  bool AwaitExit(Deadline deadline);

 private:
  Child(pid_t pid, Fd pid_fd, control::Channel channel)
      : pid_(pid), pid_fd_(std::move(pid_fd)), channel_(std::move(channel)) {}
  pid_t pid_;
  Fd pid_fd_;
  control::Channel channel_;
  bool gone_ = false;
};

// What an agent knows of its worker's process.
struct WorkerState {
  // Of none: as of one that idles.
  verdict::ProcessState process = verdict::ProcessState::kRunning;
  int exit_code = 0;
  int signal = 0;
  Ticks started = 0;
  Ticks stopped = 0;
  Ticks died = 0;
  std::optional<int> death;  // wait status

  void Note(const ChildChange& change);
  // Of one that is dead: its last event, which it could not write itself.
  void AppendDeath(journal::Journal& journal) const;
};

}  // namespace lockstep::agent
