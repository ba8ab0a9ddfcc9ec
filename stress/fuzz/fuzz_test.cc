// The judge against random programs, and the fuzzer against judges that err.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/seeded_trials.h"
#include "core/verdict/judge.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/fuzz/campaign.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::fuzz {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 1;
#if defined(__SANITIZE_THREAD__)  // slow at changes of stack
constexpr std::int64_t kTrials = 100;
#else
constexpr std::int64_t kTrials = 12'000;
#endif
constexpr double kMostSeconds = 15;

verdict::Judgement RightJudge(const std::vector<verdict::RankEvidence>& evidence,
                              const verdict::Setting& setting) {
  return verdict::Judge(evidence, setting);
}

comm::sim::SimRules RulesOf(std::uint64_t seed) { return kAllRules[seed % kAllRules.size()]; }

Campaign<Counts> Try(const TrialOptions& options, const Judging& judge) {
  return RunCampaign<Counts>(
      options, [&](std::uint64_t seed) { return Assess(DrawTrial(seed, RulesOf(seed)), judge); });
}

std::string Failure(std::uint64_t seed, const Judging& judge) {
  return DescribeFailure(seed, RulesOf(seed), judge);
}

TEST(Fuzz, NoWrongVerdict) {
  const TrialOptions options = {.seed = kSeed, .trials = kTrials, .seconds = kMostSeconds};
  const auto [counts, seconds, failed] = Try(options, RightJudge);
  fmt::print("seed {}: {} trials in {:.1f} s: {}\n", options.seed, counts.trials, seconds,
             Describe(counts));
  if (failed) FAIL() << Failure(*failed, RightJudge);
  // All kinds of ends were met; who cannot say why ranks hang is right too, but seldom.
  EXPECT_GT(counts.trouble, counts.trials / 3);
  EXPECT_GT(counts.silent, 0);
  EXPECT_GT(counts.corrupt, 0);
  EXPECT_LT(counts.unknown, 1 + counts.trouble / 50);
}

// As agents tell it of long programs.
verdict::Judgement JudgeOfNewest(std::vector<verdict::RankEvidence> evidence,
                                 const verdict::Setting& setting, std::size_t most) {
  for (verdict::RankEvidence& rank : evidence) {
    journal::Shorten(rank.journal, most);
  }
  return verdict::Judge(evidence, setting);
}

// Where calls differ, the first of them may be lost: then a later one is named, or none.
TEST(Fuzz, WhatIsLostOfHistoriesMakesNoFalseAlarm) {
  for (const std::size_t most : {6, 12, 24, 48}) {
    const Judging judge = [&](const auto& evidence, const auto& setting) {
      return JudgeOfNewest(evidence, setting, most);
    };
    const TrialOptions options = {.seed = kSeed, .trials = kTrials / 8, .seconds = kMostSeconds};
    const auto [counts, seconds, failed] = RunCampaign<Counts>(options, [&](std::uint64_t seed) {
      Assessment assessment = Assess(DrawTrial(seed, RulesOf(seed)), judge);
      for (const char* allowed : {"missed", "cause", "culprit"}) {
        if (assessment.wrong.starts_with(allowed)) assessment.wrong.clear();
      }
      return assessment;
    });
    if (failed) FAIL() << "of the newest " << most << " events: " << Failure(*failed, judge);
    EXPECT_GT(counts.trouble, counts.trials / 3);
  }
}

// A judge that is wrong in one way is found out, and why it was is told in a small program.
struct WrongJudge {
  const char* name;
  void (*spoil)(verdict::Judgement& judgement, const std::vector<verdict::RankEvidence>& evidence);
};

const WrongJudge kWrongJudges[] = {
    {"finds nothing",
     [](verdict::Judgement& judgement, const auto&) { judgement.findings.clear(); }},
    {"blames one more",
     [](verdict::Judgement& judgement, const auto& evidence) {
       if (judgement.findings.empty()) return;
       std::vector<int>& culprits = judgement.findings[0].culprits;
       const int last = evidence.back().rank;
       if (std::find(culprits.begin(), culprits.end(), last) == culprits.end()) {
         culprits.push_back(last);
       }
     }},
    {"is always sure",
     [](verdict::Judgement& judgement, const auto&) {
       for (verdict::Finding& finding : judgement.findings) finding.proved = true;
     }},
    {"takes who waits for hung",
     [](verdict::Judgement& judgement, const auto& evidence) {
       for (std::size_t i = 0; i < evidence.size(); ++i) {
         const bool running = evidence[i].state == verdict::ProcessState::kRunning;
         if (running && evidence[i].error.empty())
           judgement.outcomes[i].outcome = verdict::Outcome::kHung;
       }
     }},
    {"confuses causes",
     [](verdict::Judgement& judgement, const auto&) {
       for (verdict::Finding& finding : judgement.findings) {
         if (finding.cause == verdict::Cause::kCountMismatch)
           finding.cause = verdict::Cause::kTypeMismatch;
       }
     }},
};

TEST(Fuzz, FindsWrongJudgesWithinAThousandTrials) {
  for (const WrongJudge& wrong : kWrongJudges) {
    SCOPED_TRACE(wrong.name);
    const Judging judge = [&](const auto& evidence, const verdict::Setting& setting) {
      verdict::Judgement judgement = verdict::Judge(evidence, setting);
      wrong.spoil(judgement, evidence);
      return judgement;
    };
    const auto [counts, seconds, failed] = Try({.seed = kSeed, .trials = 1000}, judge);
    ASSERT_TRUE(failed);
    const std::string text = Failure(*failed, judge);
    fmt::print("a judge that {}: after {} trials\n{}\n", wrong.name, counts.trials, text);
    EXPECT_THAT(text, HasSubstr("kind = \"script\""));
  }
}

TEST(Fuzz, ATrialFollowsFromItsSeed) {
  for (std::uint64_t seed = kSeed; seed < kSeed + 50; ++seed) {
    const FuzzTrial trial = DrawTrial(seed, comm::sim::SimRules::kMpi);
    EXPECT_EQ(ScenarioText(trial), ScenarioText(DrawTrial(seed, comm::sim::SimRules::kMpi)));
    const FuzzRun a = Simulate(trial), b = Simulate(trial);
    EXPECT_EQ(a.report.end_ns, b.report.end_ns) << "seed " << seed;
    EXPECT_EQ(a.wrong, b.wrong) << "seed " << seed;
  }
}

// In real time, a trial that computes would take as long as its ranks together say.
TEST(Fuzz, TrainingComputesInVirtualTime) {
  int computing = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 1000 && computing < 3; ++seed) {
    FuzzTrial trial = DrawTrial(seed, comm::sim::SimRules::kMpi);
    if (!trial.training || trial.fault != FuzzFault::kNone) continue;
    if (trial.training->compute_us.At(0) == 0) continue;
    ++computing;
    const std::int64_t with_work = Simulate(trial).report.end_ns;
    trial.training->compute_us = {{0}};
    EXPECT_GT(with_work, Simulate(trial).report.end_ns) << "seed " << seed;
  }
  EXPECT_EQ(computing, 3);
}

TEST(Fuzz, ItsTextIsAScenario) {
  std::set<FuzzFault> seen;
  int messages = 0, nonblocking_calls = 0, evaluations = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 600; ++seed) {
    const FuzzTrial trial = DrawTrial(seed, static_cast<comm::sim::SimRules>(seed % 3));
    const Result<scenario::Scenario> scenario =
        scenario::ParseScenario(ScenarioText(trial), "fuzz.toml");
    ASSERT_TRUE(scenario.ok()) << scenario.status().message() << "\n" << ScenarioText(trial);
    seen.insert(trial.fault);
    if (trial.training) {
      const ddp::TrainingProgram& read = std::get<ddp::TrainingProgram>(scenario->workload);
      ASSERT_EQ(read.evaluation.has_value(), trial.training->evaluation.has_value());
      if (!read.evaluation) continue;
      ++evaluations;
      EXPECT_EQ(read.evaluation->ranks, trial.training->evaluation->ranks);
      continue;
    }
    messages += std::ranges::count_if(trial.senders, [](int sender) { return sender >= 0; }) > 0;
    nonblocking_calls += HasNonblockingCalls(trial) ? 1 : 0;
    EXPECT_FALSE(HasNonblockingCalls(trial) && trial.rules == comm::sim::SimRules::kGloo)
        << "gloo has no such calls";
    const auto& program = std::get<scenario::ScriptProgram>(scenario->workload);
    for (int rank = 0; rank < trial.ranks; ++rank) {
      std::vector<collective::Operation> read, called;
      for (const scenario::ScriptStep& step : program.steps[static_cast<std::size_t>(rank)]) {
        if (step.kind == scenario::ScriptStep::Kind::kCollective) read.push_back(step.operation);
      }
      for (const PlannedCall& call : RealCalls(trial, rank)) {
        called.push_back(call.operation);
        called.back().blocking = collective::Blocking::kBlocking;  // a script has no other
      }
      EXPECT_EQ(read, called) << ScenarioText(trial);
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kFuzzFaults));
  EXPECT_GT(messages, 50);
  EXPECT_GT(nonblocking_calls, 20);
  EXPECT_GT(evaluations, 0);
}

TEST(Shrink, KeepsWhatMattersOnly) {
  // "Fails" as long as the faulty rank skips an all_reduce in a program of three ranks and more.
  FuzzTrial trial;
  for (std::uint64_t seed = kSeed; seed < kSeed + 10'000; ++seed) {
    trial = DrawTrial(seed, comm::sim::SimRules::kGloo);
    if (trial.training) continue;
    const collective::Operation& skipped =
        trial.steps[std::min(trial.at, trial.steps.size() - 1)].operation;
    if (trial.fault == FuzzFault::kSkip &&
        skipped.collective == collective::Collective::kAllReduce && trial.ranks == 8 &&
        trial.steps.size() == 10) {
      break;
    }
  }
  ASSERT_FALSE(trial.training);
  ASSERT_EQ(trial.fault, FuzzFault::kSkip);
  ASSERT_EQ(trial.ranks, 8);
  const FuzzTrial least = Shrink(trial, [](const FuzzTrial& t) {
    return t.fault == FuzzFault::kSkip && t.ranks >= 3 &&
           t.steps[t.at].operation.collective == collective::Collective::kAllReduce;
  });
  EXPECT_EQ(least.ranks, 3);
  ASSERT_EQ(least.steps.size(), 1u);
  EXPECT_EQ(least.steps[0].operation.count, 1);
  EXPECT_LE(least.communicators.size(), 2u);
  EXPECT_EQ(least.streams, StreamUse::kInline);
}

}  // namespace
}  // namespace lockstep::stress::fuzz
