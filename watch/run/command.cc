// The command gets this process's standard streams, signal mask and limits, as if nobody stood
// between it and who started this. Only its environment differs.
#include "watch/run/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/control/open_files.h"
#include "watch/events/segment.h"

namespace lockstep::watch::run {

namespace {

std::vector<char*> Arguments(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

Status NotStarted(const std::vector<std::string>& words, int error) {
  return InvalidInput(fmt::format("{}: cannot be started ({}); name a program that can be run",
                                  words.front(), std::strerror(error)));
}

}  // namespace

Command::Command(bool launched) : launched_(launched), group_(getpgrp()) {
  sigaction(SIGPIPE, nullptr, &pipe_before_);
}

Status Command::Start(const std::vector<std::string>& words, const std::string& library,
                      const std::string& folder,
                      const std::vector<std::pair<std::string, std::string>>& variables,
                      CommandFacts& facts) {
  facts_ = &facts;
  const std::vector<char*> arguments = Arguments(words);
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string preload =
      library + (before && *before ? ":" + std::string(before) : std::string());
  int problem[2];
  if (pipe2(problem, O_CLOEXEC) != 0) return EnvironmentError("no pipe: too many open files");
  process_ = fork();
  if (process_ == 0) {
    facts.pid = getpid();
    setpgid(0, group_);  // the watcher may have left it
    setenv("LD_PRELOAD", preload.c_str(), 1);
    setenv(events::kFolderVariable, folder.c_str(), 1);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    sigaction(SIGPIPE, &pipe_before_, nullptr);
    control::LimitOpenFiles(control::InheritedOpenFiles());
    pthread_sigmask(SIG_SETMASK, &control::Signals::inherited_mask(), nullptr);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    facts.pid = 0;
    if (write(problem[1], &error, sizeof error) < 0) _exit(127);
    _exit(127);
  }
  close(problem[1]);
  int error = 0;
  const bool failed = process_ < 0 || read(problem[0], &error, sizeof error) > 0;
  close(problem[0]);
  if (!failed) {
    end_.Reset(static_cast<int>(syscall(SYS_pidfd_open, process_, 0)));
    return OkStatus();
  }
  if (process_ > 0) waitpid(process_, nullptr, 0);
  return NotStarted(words, error);
}

Status Command::Become(const std::vector<std::string>& words) {
  const std::vector<char*> arguments = Arguments(words);
  std::fflush(nullptr);
  execvp(arguments[0], arguments.data());
  return NotStarted(words, errno);
}

bool Command::Await(int ms, std::vector<pollfd> others, control::Signals& signals) {
  others.push_back({end_.get(), POLLIN, 0});
  others.push_back({signals.fd(), POLLIN, 0});
  poll(others.data(), others.size(), ms);
  const control::Signals::Arrived arrived = signals.Take();
  // A launcher also continues ranks that it had stopped.
  const bool warned = arrived.warned && launched_ && !WasStopped();
  told_to_end_ = told_to_end_ || arrived.end != 0 || warned;
  if (arrived.end != 0 && !HeardItself(arrived, process_, group_)) to_pass_on_ = arrived.end;
  return (others[others.size() - 2].revents & POLLIN) != 0;
}

bool HeardItself(const control::Signals::Arrived& arrived, pid_t process, pid_t group) {
  return arrived.of_terminal && getpgid(process) == group;
}

bool Command::WasStopped() const {
  siginfo_t found{};
  return waitid(P_PID, static_cast<id_t>(process_), &found, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         found.si_pid != 0;
}

void Command::PassOn() {
  if (to_pass_on_ != 0) Signal(std::exchange(to_pass_on_, 0));
}

void Command::Signal(int number) const {
  if (facts_->code < 0) kill(process_, number);
}

// Known to the keeper before the command is reaped, whatever becomes of this process.
int Command::ExitCode() {
  siginfo_t found{};
  if (facts_->code >= 0) return facts_->code;
  if (waitid(P_PID, static_cast<id_t>(process_), &found, WEXITED | WNOWAIT) == 0) {
    facts_->code = found.si_code == CLD_EXITED ? found.si_status : 128 + found.si_status;
    waitpid(process_, nullptr, 0);
  }
  return facts_->code;
}

}  // namespace lockstep::watch::run
