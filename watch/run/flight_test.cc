// When ranks are asked for dumps. PyTorch says so on stderr as an error, so a job that starts must
// not be asked.
#include "watch/run/flight.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/fd.h"
#include "watch/run/folder.h"

namespace lockstep::watch::run {
namespace {

// Where PyTorch makes the pipe of a rank.
std::string PipeOf(const Flight& flight, int rank) {
  for (const auto& [name, value] : flight.variables()) {
    if (name == "TORCH_NCCL_DEBUG_INFO_PIPE_FILE") return value + std::to_string(rank) + ".pipe";
  }
  return "";
}

Fd MakePipe(const std::string& path, std::int64_t age_s) {
  EXPECT_EQ(mkfifo(path.c_str(), 0600), 0) << path;
  Fd end(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const timespec made{static_cast<time_t>(ClockNs(CLOCK_REALTIME) / 1'000'000'000 - age_s), 0};
  const timespec times[] = {made, made};
  EXPECT_EQ(futimens(end.get(), times), 0);
  return end;
}

bool IsAsked(const Fd& pipe) {
  char bytes[16];
  return read(pipe.get(), bytes, sizeof bytes) > 0;
}

// Of ranks whose pipes are so old, where nobody was seen to call anything for a moment.
std::pair<bool, bool> Asked(std::int64_t first_age_s, std::int64_t second_age_s,
                            bool silent = true) {
  constexpr double kMoment = 1e-9;
  Flight flight;
  const Fd first = MakePipe(PipeOf(flight, 0), first_age_s);
  const Fd second = MakePipe(PipeOf(flight, 1), second_age_s);
  EXPECT_FALSE(flight.Look(silent, kMoment, nullptr));
  return {IsAsked(first), IsAsked(second)};
}

// One from the future is younger than any silence.
constexpr std::int64_t kOld = 3600, kYoung = -3600;

TEST(Flight, ASilentJobIsAsked) { EXPECT_EQ(Asked(kOld, kOld), std::pair(true, true)); }

// A rank has made its pipe, and reads it a moment later. No process of ours has its watcher's
// number, as in another container.
TEST(Flight, AnotherWatchersPipesStayAsLongAsItHoldsItsLock) {
  const std::string watcher =
      "/tmp/lockstep-flight-99999999-" + std::to_string(std::random_device{}()) + "_";
  Fd held = HoldLock(watcher + "lock");
  ASSERT_TRUE(held.valid());
  const std::string pipe = watcher + "0.pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  { const Flight flight; }
  EXPECT_EQ(access(pipe.c_str(), F_OK), 0);
  held.Reset();
  { const Flight flight; }
  EXPECT_NE(access(pipe.c_str(), F_OK), 0);
  EXPECT_NE(access((watcher + "lock").c_str(), F_OK), 0);
}

TEST(Flight, WhatWasMadeWithoutALockIsSweptADayLater) {
  const std::string watcher =
      "/tmp/lockstep-flight-99999999-" + std::to_string(std::random_device{}()) + "_";
  const std::string fresh = watcher + "0.pipe";
  MakePipe(fresh, 3600);
  { const Flight flight; }
  EXPECT_EQ(access(fresh.c_str(), F_OK), 0);
  unlink(fresh.c_str());
  const std::string old = watcher + "1.pipe";
  MakePipe(old, 2 * 24 * 3600);
  { const Flight flight; }
  EXPECT_NE(access(old.c_str(), F_OK), 0);
}

TEST(Flight, AJobThatStartsIsNotAsked) {
  EXPECT_EQ(Asked(kYoung, kYoung), std::pair(false, false));
  EXPECT_EQ(Asked(kOld, kYoung), std::pair(false, false)) << "its last rank starts";
}

TEST(Flight, AJobThatCallsIsNotAsked) {
  EXPECT_EQ(Asked(kOld, kOld, false), std::pair(false, false));
}

}  // namespace
}  // namespace lockstep::watch::run
