// Faults of the program: what each does to a process, and to a rank of a simulation.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/rank_body.h"

namespace lockstep::stress::faults {
namespace {

struct Ended {};

class InjectedRank final : public RankBody, public SimulatedRank {
 public:
  explicit InjectedRank(bool is_simulated) : is_simulated_(is_simulated) {}
  void Journal(std::size_t) override {}
  Status ApplyOutside(std::size_t) override { return OkStatus(); }
  double SecondsSinceStart() override { return 0; }
  void Exit(int code) override { exit_code = code; }
  Status Sleep(std::int64_t ns) override {
    slept_seconds = static_cast<double>(ns) * 1e-9;
    while (sleeps) pause();
    return OkStatus();
  }
  SimulatedRank* simulated() override { return is_simulated_ ? this : nullptr; }
  RankMarks& marks() override { return marks_; }
  void CrashBy(int by) override {
    signal = by;
    throw Ended{};
  }
  void Hang() override {
    hangs = true;
    throw Ended{};
  }
  int exit_code = -1;
  int signal = 0;
  bool hangs = false;
  bool sleeps = false;  // and does not come back
  double slept_seconds = 0;

 private:
  bool is_simulated_;
  RankMarks marks_;
};

// None: the rank does not come back from it.
std::optional<Status> Inject(std::string_view name, RankBody& rank,
                             std::optional<double> duration_seconds = std::nullopt) {
  PlannedFault fault;
  fault.duration_seconds = duration_seconds;
  try {
    return FindFault(name)->inject(rank, fault);
  } catch (const Ended&) {
    return std::nullopt;
  }
}

TEST(ProgramFaults, ACrashEndsAProcessByItsSignal) {
  InjectedRank rank(/*is_simulated=*/false);
  EXPECT_EXIT(Inject("segfault", rank), ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(Inject("abort", rank), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(ProgramFaults, ACrashOfASimulatedRankLeavesTheProcessAlone) {
  InjectedRank rank(/*is_simulated=*/true);
  EXPECT_FALSE(Inject("segfault", rank));
  EXPECT_EQ(rank.signal, SIGSEGV);
  EXPECT_FALSE(Inject("abort", rank));
  EXPECT_EQ(rank.signal, SIGABRT);
}

TEST(ProgramFaults, AHangWithADurationIsASleep) {
  for (const bool simulated : {false, true}) {
    InjectedRank rank(simulated);
    EXPECT_TRUE(Inject("hang", rank, 2.0)->ok());
    EXPECT_EQ(rank.slept_seconds, 2.0);
    EXPECT_FALSE(rank.hangs);
  }
  InjectedRank rank(/*is_simulated=*/true);
  EXPECT_FALSE(Inject("hang", rank));
  EXPECT_TRUE(rank.hangs);
}

TEST(ProgramFaults, WhatRaisesIsMarkedAndWhatGoesOnIsNot) {
  InjectedRank raising(/*is_simulated=*/true);
  EXPECT_FALSE(Inject("throw", raising)->ok());
  EXPECT_TRUE(raising.marks().raised);
  InjectedRank going(/*is_simulated=*/true);
  EXPECT_TRUE(Inject("hung_abort", going)->ok());
  EXPECT_TRUE(going.marks().abort_hangs);
  EXPECT_FALSE(going.marks().raised);
}

TEST(ProgramFaults, ABlockedOutputHoldsAProcessInWrite) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(600);
    InjectedRank rank(/*is_simulated=*/false);
    rank.sleeps = true;
    Inject("blocked_output", rank);
    _exit(0);
  }
  std::string channel;
  int status = 0;
  while (channel.find("pipe_write") == channel.npos && waitpid(pid, &status, WNOHANG) == 0) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/wchan");
    std::getline(file, channel);
  }
  EXPECT_NE(channel.find("pipe_write"), channel.npos);
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
}

TEST(ProgramFaults, ABlockedOutputHealsAndGivesStandardOutputBack) {
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(fstat(STDOUT_FILENO, &before), 0);
  InjectedRank rank(/*is_simulated=*/false);
  EXPECT_TRUE(Inject("blocked_output", rank, 2.0)->ok());
  EXPECT_EQ(rank.slept_seconds, 2.0);
  ASSERT_EQ(fstat(STDOUT_FILENO, &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
}

TEST(ProgramFaults, ABlockedOutputOfASimulatedRankIsAHang) {
  InjectedRank rank(/*is_simulated=*/true);
  EXPECT_FALSE(Inject("blocked_output", rank));
  EXPECT_TRUE(rank.hangs);
}

}  // namespace
}  // namespace lockstep::stress::faults
