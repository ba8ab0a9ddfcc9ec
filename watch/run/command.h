// The command that is watched: started with the preload library, waited for, told to end.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "core/base/status.h"
#include "core/control/signals.h"

namespace lockstep::watch::run {

// Of a command that was started, for whoever outlives its watcher.
struct CommandFacts {
  std::atomic<pid_t> pid = 0;
  std::atomic<int> code = -1;  // as Command::ExitCode(); -1: it was not reaped
};

// The terminal that sent the signal sent it to this process of a command, too: it is in the group
// of who took the signal (`timeout` leaves that).
bool HeardItself(const control::Signals::Arrived& arrived, pid_t process, pid_t group);

class Command {
 public:
  // To be made before control::Signals, whose mask the command must not inherit. `launched`: by a
  // launcher, which may warn by SIGCONT; a shell's means that a job goes on.
  explicit Command(bool launched);

  // `folder`: for segments. `variables`: "NAME", "VALUE" for the command alone. The new process
  // writes its id to `facts` before it becomes the command.
  Status Start(const std::vector<std::string>& words, const std::string& library,
               const std::string& folder,
               const std::vector<std::pair<std::string, std::string>>& variables,
               CommandFacts& facts);
  // This process becomes the command, unwatched. To be called before there is a Command or
  // control::Signals. Returns why it could not be started.
  static Status Become(const std::vector<std::string>& words);
  // Sleeps until the command ends, one of `others` is ready, a signal comes or `ms` are over.
  // True when the command has ended.
  bool Await(int ms, std::vector<pollfd> others, control::Signals& signals);
  // To the command, the signals to end that Await saw, but for one that it heard itself.
  void PassOn();
  // A signal told this watcher to end, or its launcher has begun to end the launch.
  bool told_to_end() const { return told_to_end_; }
  void Signal(int number) const;
  // Of a command that ended: its own, or 128 and the signal that ended it.
  int ExitCode();

 private:
  // It stands, or went on since this was asked last.
  bool WasStopped() const;

  bool launched_;
  struct sigaction pipe_before_;
  pid_t group_;  // of the process that the launcher started
  pid_t process_ = -1;
  Fd end_;  // readable when it has ended
  CommandFacts* facts_ = nullptr;
  bool told_to_end_ = false;
  int to_pass_on_ = 0;  // a signal
};

}  // namespace lockstep::watch::run
