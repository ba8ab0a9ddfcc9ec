// What stands between a launcher and a watcher of one rank: a watcher that is lost costs no rank.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "core/base/status.h"
#include "core/control/signals.h"
#include "watch/run/command.h"
#include "watch/run/folder.h"

namespace lockstep::watch::run {

class Keeper {
 public:
  static Result<std::unique_ptr<Keeper>> Make();
  ~Keeper();

  // Returns nothing in a new process, which is to watch. This process keeps it until it has ended:
  // returns its exit code then. Where it was killed, that of the command, which goes on.
  // `rank`: for the line that says so. A signal to end is passed on.
  std::optional<int> Fork(int rank, const Folder& folder, control::Signals& signals);
  CommandFacts& command() { return *command_; }

 private:
  explicit Keeper(CommandFacts* command) : command_(command) {}
  // True when the process to wait for has ended.
  bool Reap();
  void WatcherDied(int signal);

  CommandFacts* command_;  // in memory that both processes share
  const Folder* folder_ = nullptr;
  int rank_ = -1;
  pid_t child_ = -1;  // the watcher; after its death the command
  bool watched_ = true;
  int code_ = -1;
};

}  // namespace lockstep::watch::run
