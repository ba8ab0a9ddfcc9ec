// Cases in simulation from their text to the verdict: which results are compared.
#include "stress/simulate/simulate.h"

#include <fmt/format.h>

#include <string>

#include "core/base/status.h"
#include "core/comm/sim/rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"
#include "stress/cases/plan_faults.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::simulate {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCorrupt =
    "[[fault]]\nkind = \"corrupt_result\"\nrank = 1\nat = \"collective:1\"\n";

cases::CaseResult ResultOf(const std::string& rest,
                           comm::sim::SimRules rules = comm::sim::SimRules::kMpi) {
  const Result<scenario::Scenario> scenario =
      scenario::ParseScenario("name = \"a/b\"\nranks = 2\n[workload]\n" + rest, "a.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  if (!scenario.ok()) return {};
  return Simulate({*scenario, "", 1, cases::PlanFaults(*scenario, 1), "a/b"}, rules, 5,
                  [] { return std::string(); });
}

std::string Script(const std::string& first, const std::string& second) {
  return "kind = \"script\"\nrounds = 3\nrank.0 = [" + first + "]\nrank.1 = [" + second + "]\n";
}

TEST(Simulate, ResultsOfMessagesAndOfWhatStandsBesideThemAreCompared) {
  const std::string pair = Script("\"send world f32 64 peer=1\", \"recv world i64 3 peer=1\"",
                                  "\"recv world f32 64 peer=0\", \"send world i64 3 peer=0\"");
  const std::string behind = Script("\"all_reduce world f32 64\", \"send world f32 64 peer=1\"",
                                    "\"all_reduce world f32 64\", \"recv world f32 64 peer=0\"");
  for (const std::string& script : {pair, behind}) {
    const cases::CaseResult right = ResultOf(script);
    EXPECT_EQ(right.verdict, verdict::Verdict::kPass);
    EXPECT_EQ(right.why, "every rank finished with right data");
    const cases::CaseResult wrong = ResultOf(script + kCorrupt);
    EXPECT_EQ(wrong.verdict, verdict::Verdict::kFail);
    EXPECT_THAT(wrong.why, HasSubstr("rank 1 received wrong data"));
  }
}

TEST(Simulate, AMessageThatIsNotKnownIsNotCompared) {
  const std::string script = Script("\"send world f32 4 peer=1\"", "\"recv world f32 8 peer=0\"");
  EXPECT_EQ(ResultOf(script).why, "every rank finished; data not compared");
  EXPECT_EQ(ResultOf(script + kCorrupt).verdict, verdict::Verdict::kUnknown);
}

TEST(Simulate, WhatLoadingRanksAgreeOnIsCompared) {
  const std::string loading =
      "kind = \"sharded_loading\"\nbetween = \"all_reduce\"\nsamples = 16\nbatch = 4\n";
  EXPECT_EQ(ResultOf(loading).verdict, verdict::Verdict::kPass);
  EXPECT_THAT(ResultOf(loading + kCorrupt).why, HasSubstr("rank 1 received wrong data"));
}

// The broadcast of the parameters, of which no rank knows what is right.
TEST(Simulate, ACorruptedResultThatTrainingDoesNotCompareIsUnknown) {
  const std::string training = "kind = \"ddp_training\"\nmodel = \"linear_1_1\"\ninputs = 3\n";
  EXPECT_EQ(ResultOf(training).why, "every rank finished with right gradients");
  const cases::CaseResult result = ResultOf(
      training + "[[fault]]\nkind = \"corrupt_result\"\nrank = 1\nat = \"collective:3\"\n");
  EXPECT_EQ(result.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(result.why, HasSubstr("no comparison of data shows corrupt_result of rank 1"));
}

// In iteration 5 the library fails, and the ranks go on from there.
TEST(Simulate, WhatWasSpoiledBeforeARecoveryFails) {
  const std::string loop =
      "kind = \"all_reduce_loop\"\nsizes = [\"4K\"]\nrounds = 9\n[recovery]\nmode = \"restart\"\n"
      "[[fault]]\nkind = \"failed_collective\"\nrank = 1\nat = \"iteration:5\"\n";
  const auto with = [&](const std::string& kind, int iteration) {
    return ResultOf(loop + fmt::format("[[fault]]\nkind = \"{}\"\nrank = 1\nat = "
                                       "\"iteration:{}\"\n",
                                       kind, iteration),
                    comm::sim::SimRules::kGloo);
  };
  const cases::CaseResult alone = ResultOf(loop, comm::sim::SimRules::kGloo);
  EXPECT_EQ(alone.verdict, verdict::Verdict::kPass) << alone.why;
  for (const int iteration : {2, 7}) {
    EXPECT_EQ(with("wrong_op", iteration).verdict, verdict::Verdict::kFail) << iteration;
    const cases::CaseResult corrupt = with("corrupt_result", iteration);
    EXPECT_EQ(corrupt.verdict, verdict::Verdict::kFail) << iteration;
    EXPECT_THAT(corrupt.why, HasSubstr("rank 1 received wrong data"));
    EXPECT_EQ(corrupt.judgement.outcomes.at(1).outcome, verdict::Outcome::kCorrupt);
  }
}

}  // namespace
}  // namespace lockstep::stress::simulate
