// Real processes and threads share one processor or are stopped. The tests wait until the delay has
// grown, however long that takes.
#include "core/environment/run_delay.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "core/base/deadline.h"
#include "gtest/gtest.h"

namespace lockstep::environment {
namespace {

constexpr double kLimitSeconds = 60;  // only against a hang

pid_t Start(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  while (true) work();
}

void End(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

TEST(RunDelay, TwoThatShareAProcessorBothWait) {
  cpu_set_t before, one;
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);  // and so do the children
  const pid_t first = Start([] {}), second = Start([] {});
  sched_setaffinity(0, sizeof before, &before);
  RunDelay delay(first);
  const Deadline limit = Deadline::AfterSeconds(kLimitSeconds);
  double last = 0, seconds = 0;
  while (seconds < 0.02 && !limit.Passed()) {
    seconds = delay.Seconds();
    EXPECT_GE(seconds, last) << "a total only grows";
    last = seconds;
    usleep(1000);
  }
  EXPECT_GE(seconds, 0.02);
  End(first);
  End(second);
  EXPECT_GE(delay.Seconds(), last) << "what it waited stays known when it is gone";
}

TEST(RunDelay, WhoIsStoppedWaitsForNoProcessor) {
  const pid_t stopped = Start([] { pause(); });
  kill(stopped, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(stopped, &status, WUNTRACED), stopped);
  ASSERT_TRUE(WIFSTOPPED(status));
  RunDelay delay(stopped);
  const double first = delay.Seconds();
  for (int i = 0; i < 40; ++i) EXPECT_EQ(delay.Seconds(), first);
  End(stopped);
}

TEST(RunDelay, AThreadThatComesIsFound) {
  RunDelay delay(getpid());
  delay.Seconds();
  std::atomic<bool> over = false;
  std::thread thread([&] {
    while (!over) sched_yield();
  });
  delay.FindThreads();
  const double known = delay.Seconds();
  EXPECT_TRUE(delay.known());
  for (int i = 0; i < 64; ++i) EXPECT_GE(delay.Seconds(), known);
  over = true;
  thread.join();
  EXPECT_GE(delay.Seconds(), known) << "and stays counted";
}

TEST(RunDelay, NobodyWaitsInAProcessThatIsNone) {
  RunDelay gone[] = {RunDelay(1 << 30), RunDelay(getpid(), 1 << 30)};
  for (RunDelay& delay : gone) {
    EXPECT_EQ(delay.Seconds(), 0);
    EXPECT_FALSE(delay.known());
  }
}

}  // namespace
}  // namespace lockstep::environment
