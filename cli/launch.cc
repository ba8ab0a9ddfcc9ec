// A launch is a child process under timeout(1), so that its limit holds even when this process is
// killed. SIGINT and SIGTERM are noted here and passed on, never obeyed at once: the cases that are
// over must still be stored. Agents outlive a launcher that was ended, and write their file then:
// as its orphans they become children of this process, which awaits them.
#include "cli/launch.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "core/base/deadline.h"

namespace lockstep::cli {
namespace {

volatile std::sig_atomic_t told_to_end = 0;
void OnSignal(int) { told_to_end = 1; }

constexpr double kLeaveSeconds = 10;
constexpr long kLookNs = 20'000'000;

void Pause() {
  const timespec pause{0, kLookNs};
  nanosleep(&pause, nullptr);
}

LaunchEnd Await(pid_t pid, const std::string& result) {
  int status = 0;
  bool ended = false;
  std::optional<Deadline> leave;  // its result was there before it was told to end
  while (waitpid(pid, &status, WNOHANG) == 0) {
    const bool over = told_to_end == 0 && access(result.c_str(), F_OK) == 0;
    if (!leave && over) leave = Deadline::AfterSeconds(kLeaveSeconds);
    if (!ended && (told_to_end != 0 || (leave && leave->Passed()))) {
      kill(pid, SIGTERM);  // timeout(1) passes it on, and kills when that does not help
      ended = true;
    }
    Pause();
  }
  const int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {.exit_code = exit_code, .interrupted = told_to_end != 0 && exit_code != 0 && !leave};
}

// What a launcher that did not end well left behind. Bounded: ssh leaves connections that stay.
void AwaitOrphans() {
  const Deadline leave = Deadline::AfterSeconds(kLeaveSeconds);
  while (waitpid(-1, nullptr, WNOHANG) >= 0 && !leave.Passed()) Pause();
}

}  // namespace

SignalsNoted::SignalsNoted() {
  struct sigaction noted {};
  noted.sa_handler = OnSignal;  // without SA_RESTART
  sigaction(SIGINT, &noted, &interrupt_);
  sigaction(SIGTERM, &noted, &terminate_);
}

SignalsNoted::~SignalsNoted() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

Result<LaunchEnd> RunLaunch(const LaunchOrder& order) {
  if (told_to_end != 0) return LaunchEnd{.interrupted = true};
  // A limit that holds even if this process is killed.
  std::vector<std::string> words = {"timeout", "--foreground", "-k", "3",
                                    fmt::format("{}", order.limit_seconds)};
  words.insert(words.end(), order.words.begin(), order.words.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, order.log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return EnvironmentError("can't start '{}' ({}); it is part of coreutils", argv[0],
                            std::strerror(error));
  }
  const LaunchEnd end = Await(pid, order.result);
  if (end.exit_code != 0) AwaitOrphans();
  return end;
}

}  // namespace lockstep::cli
