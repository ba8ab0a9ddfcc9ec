// Faults of the program: what each does to a process, and to a rank of a simulation.
#include <csignal>
#include <optional>
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

}  // namespace
}  // namespace lockstep::stress::faults
