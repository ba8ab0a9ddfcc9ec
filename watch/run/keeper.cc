// Launchers end all ranks when a process that they started is killed. So that process only keeps a
// watcher, which may crash, run out of memory or be killed. Its command then becomes a child of the
// keeper (a subreaper), which waits for it. It relies on signals that are blocked and polled.
#include "watch/run/keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "core/base/print_stderr.h"
#include "core/control/machine.h"

namespace lockstep::watch::run {

Result<std::unique_ptr<Keeper>> Keeper::Make() {
  void* const memory = mmap(nullptr, sizeof(CommandFacts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return EnvironmentError("no memory for the watcher");
  return std::unique_ptr<Keeper>(new Keeper(new (memory) CommandFacts()));
}

Keeper::~Keeper() { munmap(command_, sizeof *command_); }

void Keeper::WatcherDied(int signal) {
  watched_ = false;
  folder_->Abandon();
  child_ = command_->pid;
  PrintStderr(
      "lockstep watch: rank {} (host {}) is not watched any more: its watcher was ended by "
      "signal {}; the program goes on\n",
      rank_, control::HostName(), signal);
}

bool Keeper::Reap() {
  int status = 0;
  bool gone = false;
  // Orphans of the program become children of this process, too.
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == command_->pid || ended == child_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      gone = gone || ended == command_->pid;
    }
    if (ended != child_ || !watched_) continue;
    const int of_command = command_->code;  // where the watcher reaped it
    if (of_command >= 0 && WIFSIGNALED(status)) code_ = of_command;
    if (!WIFSIGNALED(status) || command_->pid == 0 || of_command >= 0) return true;
    WatcherDied(WTERMSIG(status));
  }
  return !watched_ && (gone || kill(child_, 0) != 0);
}

std::optional<int> Keeper::Fork(int rank, const Folder& folder, control::Signals& signals) {
  rank_ = rank;
  folder_ = &folder;
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t keeper = getpid();
  child_ = fork();
  if (child_ < 0) return std::nullopt;  // then this process watches, without a keeper
  if (child_ == 0) {
    // Who kills the keeper means the rank.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper) raise(SIGTERM);
    // Hydra kills a rank's group at once: the watcher outlives that, and removes its files.
    setpgid(0, 0);
    return std::nullopt;
  }
  setpgid(child_, child_);  // before the child itself had a processor
  while (!Reap()) {
    pollfd item = {signals.fd(), POLLIN, 0};
    poll(&item, 1, -1);
    const control::Signals::Arrived arrived = signals.Take();
    // The watcher does so, too, but SIGKILL may come before it had a processor.
    if (arrived.end != 0) folder_->Remove();
    if (arrived.warned && watched_) kill(child_, SIGCONT);  // it knows its parent's
    // The watcher has a group of its own. The command, a child after its death, heard a terminal.
    if (watched_ || !HeardItself(arrived, child_, getpgrp()))
      control::Signals::PassOn(arrived, child_);
  }
  return code_;
}

}  // namespace lockstep::watch::run
