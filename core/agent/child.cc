// A child is this program again, started with posix_spawn: nothing is inherited but a channel, what
// its agent shares with it and the role in its environment. A pidfd tells of its end, so that its
// number is never signalled after another process got it.
#include "core/agent/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <string_view>

#include "core/base/check.h"
#include "core/base/file_text.h"
#include "core/control/frames.h"
#include "core/control/open_files.h"
#include "core/control/signals.h"

extern char** environ;

namespace lockstep::agent {
namespace {

std::vector<std::string> OwnArguments() {
  std::istringstream text(TextOf("/proc/self/cmdline"));
  std::vector<std::string> arguments;
  std::string argument;
  while (std::getline(text, argument, '\0')) arguments.push_back(argument);
  LOCKSTEP_CHECK(!arguments.empty(), "/proc/self/cmdline cannot be read");
  return arguments;
}

std::string_view NameIn(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// Those of `own`, a later one before an earlier, then the agent's.
std::vector<std::string> EnvironmentWith(const control::ChildRole& role,
                                         const std::vector<std::string>& own) {
  std::vector<std::string> variables{
      fmt::format("{}={}", control::kRoleVariable, control::EncodeRole(role))};
  const auto add = [&](const std::string& variable) {
    const bool known = std::ranges::any_of(
        variables, [&](const auto& other) { return NameIn(other) == NameIn(variable); });
    if (!known) variables.push_back(variable);
  };
  std::for_each(own.rbegin(), own.rend(), add);
  for (char** variable = environ; *variable; ++variable) add(*variable);
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class SpawnPlan {
 public:
  explicit SpawnPlan(const std::vector<int>& inherited) {
    posix_spawn_file_actions_init(&actions_);
    Note(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    Note(posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO));
    // Onto itself: only clears close-on-exec in the child (POSIX.1-2024, glibc 2.29). The number
    // stays, so it cannot collide with what a launcher made inheritable.
    for (const int fd : inherited) Note(posix_spawn_file_actions_adddup2(&actions_, fd, fd));
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setsigmask(&attributes_, &control::Signals::inherited_mask());
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  // 0, or the first error (errno).
  int Run(pid_t& pid, std::vector<std::string> arguments, std::vector<std::string> environment) {
    if (error_ != 0) return error_;
    return posix_spawn(&pid, "/proc/self/exe", &actions_, &attributes_, Pointers(arguments).data(),
                       Pointers(environment).data());
  }

 private:
  void Note(int error) {
    if (error_ == 0) error_ = error;
  }

  int error_ = 0;
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

Status SpawnFailed(int error) {
  return EnvironmentError(
      "cannot start a worker process: {}; raise the limits on processes, open files or memory",
      std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<Child>> Child::Spawn(control::ChildRole role,
                                            const std::vector<int>& inherited,
                                            const std::vector<std::string>& environment) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return SpawnFailed(errno);
  Fd ours(pair[0]), theirs(pair[1]);
  role.channel_fd = theirs.get();
  role.agent_pid = getpid();
  role.open_files =
      control::InheritedOpenFiles();  // what is under test gets what the launcher gave
  pid_t pid = 0;
  std::vector<int> all = inherited;
  all.push_back(role.channel_fd);
  const int error = SpawnPlan(all).Run(pid, OwnArguments(), EnvironmentWith(role, environment));
  if (error != 0) return SpawnFailed(error);
  // close-on-exec by definition; glibc 2.36 declares its wrapper without C linkage
  Fd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pid_fd.valid()) {
    const int reason = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return SpawnFailed(reason);
  }
  return std::unique_ptr<Child>(new Child(
      pid, std::move(pid_fd), control::Channel(std::move(ours), control::kMostFrameBytes)));
}

Child::~Child() {
  if (gone_) return;
  Kill();
  AwaitExit(Deadline::AfterSeconds(5));
  Poll();
}

std::optional<ChildChange> Child::Poll() {
  using Kind = ChildChange::Kind;
  if (gone_) return std::nullopt;
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  // Stops and continuations first: they happened before it left.
  if (waitid(P_PID, id, &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 && info.si_pid == pid_) {
    return ChildChange{info.si_code == CLD_CONTINUED ? Kind::kContinued : Kind::kStopped,
                       info.si_status};
  }
  info = {};
  if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != pid_) {
    return std::nullopt;
  }
  // While it is a zombie, its number cannot be taken by another group.
  kill(-pid_, SIGKILL);
  waitid(P_PID, id, &info, WEXITED | WNOHANG);
  gone_ = true;
  return ChildChange{info.si_code == CLD_EXITED ? Kind::kExited : Kind::kSignalled, info.si_status};
}

void Child::Kill() {
  if (gone_) return;
  kill(-pid_, SIGKILL);  // also ends what is stopped
  kill(pid_, SIGKILL);   // if it changed its group
}

bool Child::AwaitExit(Deadline deadline) {
  if (gone_) return true;
  while (true) {
    pollfd item{pid_fd_.get(), POLLIN, 0};
    if (poll(&item, 1, deadline.RemainingMs()) > 0) return true;
    if (deadline.Passed()) return false;
  }
}

void WorkerState::Note(const ChildChange& change) {
  switch (change.kind) {
    case ChildChange::Kind::kExited:
      process = verdict::ProcessState::kExited;
      exit_code = change.value;
      death = W_EXITCODE(change.value, 0);
      died = NowTicks();
      break;
    case ChildChange::Kind::kSignalled:
      process = verdict::ProcessState::kSignalled;
      signal = change.value;
      death = W_EXITCODE(0, change.value);
      died = NowTicks();
      break;
    case ChildChange::Kind::kStopped:
      process = verdict::ProcessState::kStopped;
      signal = change.value;
      stopped = NowTicks();
      break;
    case ChildChange::Kind::kContinued:
      process = verdict::ProcessState::kRunning;
      signal = 0;
      break;
  }
}

void WorkerState::AppendDeath(journal::Journal& journal) const {
  journal::JournalEvent last{.index = journal.events.empty() ? 1 : journal.events.back().index + 1,
                             .ticks = died,
                             .value = *death,
                             .kind = journal::EventKind::kDeath};
  if (!journal.events.empty()) {
    last.case_index = journal.events.back().case_index;
    last.phase = journal.events.back().phase;
  }
  journal.events.push_back(last);
}

}  // namespace lockstep::agent
