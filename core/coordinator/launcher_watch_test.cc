// The launcher is a child of the test that starts "a rank" and ends: before the rank looks for it,
// or after. The rank tells through a pipe of its own what it sees.
#include "core/coordinator/launcher_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <functional>

namespace lockstep::coordinator {
namespace {

using Pipe = std::array<int, 2>;

Pipe MakePipe() {
  Pipe ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  return ends;
}

// What a rank tells whose outputs are read by its launcher: one character.
char RankOf(const std::function<char(const control::LaunchContext&, int launcher_ends)>& rank) {
  const Pipe told = MakePipe();
  const pid_t launcher = fork();
  if (launcher == 0) {
    const Pipe outputs = MakePipe();
    const Pipe lives = MakePipe();
    if (fork() == 0) {
      close(outputs[0]);
      for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(outputs[1], output);
      control::LaunchContext context;
      context.launcher = "mpirun";
      context.settings = {"LOCKSTEP_TEST_RANK=0"};  // which nobody above has
      close(lives[0]);
      const char seen = rank(context, lives[1]);
      if (write(told[1], &seen, 1) != 1) _exit(1);
      _exit(0);
    }
    // Ends when its rank says so.
    close(lives[1]);
    char any = 0;
    _exit(read(lives[0], &any, 1) < 0 ? 1 : 0);
  }
  close(told[1]);
  char seen = '?';
  EXPECT_EQ(read(told[0], &seen, 1), 1);
  close(told[0]);
  EXPECT_EQ(waitpid(launcher, nullptr, 0), launcher);
  return seen;
}

bool IsGone(const LauncherWatch& watch, int milliseconds) {
  pollfd item{watch.fd(), POLLIN, 0};
  return poll(&item, 1, milliseconds) == 1;
}

constexpr int kForEver = -1;

// Ends the launcher, and returns when it is gone.
void End(int launcher_ends) {
  const int launcher = static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0));
  close(launcher_ends);
  pollfd item{launcher, POLLIN, 0};
  poll(&item, 1, kForEver);
}

TEST(LauncherWatch, ALauncherThatRunsIsNotGone) {
  EXPECT_EQ(RankOf([](const control::LaunchContext& context, int) {
              return IsGone(LauncherWatch(context), 0) ? 'y' : 'n';
            }),
            'n');
}

TEST(LauncherWatch, ALauncherThatEndsLaterIsSeen) {
  EXPECT_EQ(RankOf([](const control::LaunchContext& context, int launcher_ends) {
              const LauncherWatch watch(context);
              close(launcher_ends);
              return IsGone(watch, kForEver) ? 'y' : 'n';
            }),
            'y');
}

TEST(LauncherWatch, ALauncherThatEndedBeforeIsSeen) {
  EXPECT_EQ(RankOf([](const control::LaunchContext& context, int launcher_ends) {
              End(launcher_ends);
              LauncherWatch watch(context);
              if (!IsGone(watch, 0)) return 'n';
              watch.OnGone();
              return write(STDERR_FILENO, "x", 1) == 1 ? 'y' : 'e';
            }),
            'y');
}

// torchrun's ranks write where it writes. Whoever read that may be gone long before it.
TEST(LauncherWatch, OutputsThatNobodyReadSayNothingOfTorchrun) {
  for (const bool torchrun : {true, false}) {
    const auto rank = [=](control::LaunchContext context, int) {
      if (torchrun) context.launcher = control::kTorchrun;
      const Pipe unread = MakePipe();
      close(unread[0]);
      for (const int output : {STDOUT_FILENO, STDERR_FILENO}) dup2(unread[1], output);
      return IsGone(LauncherWatch(context), 0) ? 'y' : 'n';
    };
    EXPECT_EQ(RankOf(rank), torchrun ? 'n' : 'y');
  }
}

TEST(LauncherWatch, WithoutALauncherThereIsNothingToWatch) {
  control::LaunchContext context;
  context.launcher = "none";
  EXPECT_EQ(LauncherWatch(context).fd(), -1);
}

}  // namespace
}  // namespace lockstep::coordinator
