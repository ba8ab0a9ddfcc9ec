// Literal launches of one case each, whose times interleave as real ones should. How often chance
// is taken for a change is measured in compare_simulation_test.
#include "results/compare/compare.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "results/compare/environment.h"
#include "results/compare/launches_needed.h"
#include "results/compare/print.h"
#include "results/compare/testing/literal_sides.h"

namespace lockstep::results::compare {
namespace {

TEST(CompareTest, ExitCodes) {
  const auto code = [](const Sides& sides) {
    return Compare(sides.base, sides.candidate, {}).exit_code;
  };
  EXPECT_EQ(code(SidesOf(8, 100, 100)), ExitCode::kPass);
  EXPECT_EQ(code(SidesOf(8, 100, 80)), ExitCode::kPass);
  EXPECT_EQ(code(SidesOf(8, 100, 110)), ExitCode::kRegression);
  EXPECT_EQ(code(SidesOf(3, 100, 110)), ExitCode::kInconclusive);
  EXPECT_EQ(code({}), ExitCode::kInconclusive);
  const Sides same = SidesOf(8, 100, 100);
  EXPECT_EQ(Compare(same.base, same.candidate, {}, {"bad.h5: damaged"}).exit_code,
            ExitCode::kInconclusive);
}

TEST(CompareTest, LessThanTheMinimumEffectIsNoRegression) {
  const Sides sides = SidesOf(10, 100, 101.5);
  EXPECT_EQ(OnlyCase(sides).change, Change::kSame);
  CompareOptions strict;
  ASSERT_TRUE(strict.min_effects.Add("1%").ok());
  EXPECT_EQ(OnlyCase(sides, strict).change, Change::kSlower);
}

TEST(CompareTest, ALaunchWithoutATimeFailsClosed) {
  Sides sides = SidesOf(10, 100, 80);
  sides.candidate.push_back(LaunchWith(kNan));
  const CaseComparison one = OnlyCase(sides);
  EXPECT_EQ(one.change, Change::kAmbiguous);
  EXPECT_EQ(one.why, "1 of 11 launches of the candidate have no time of it");
  sides.base.clear();
  sides.base.push_back(LaunchWith(kNan));
  EXPECT_EQ(OnlyCase(sides).change, Change::kMissing);
}

TEST(CompareTest, OneNewFailureIsARegression) {
  Sides sides = SidesOf(10, 100, 100);
  sides.candidate.push_back(LaunchWith(kNan, verdict::Verdict::kFail, "fail: rank_killed"));
  sides.base.push_back(LaunchWith(100));
  const CaseComparison one = OnlyCase(sides);
  EXPECT_EQ(one.outcome_change, OutcomeChange::kWorse);
  EXPECT_EQ(one.why, "now fail: rank_killed (1 of 11 launches, before 0 of 11)");
}

// The candidate's launches pass; the base's first one fails.
CaseComparison MendedCase(Sides sides, ExitCode code) {
  sides.base[0].cases[0].median_ns = kNan;
  sides.base[0].cases[0].verdict = verdict::Verdict::kFail;
  sides.base[0].cases[0].outcome = "fail: hang";
  const LaunchComparison comparison = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(comparison.exit_code, code) << comparison.headline;
  EXPECT_EQ(comparison.cases[0].outcome_change, OutcomeChange::kBetter);
  EXPECT_NE(comparison.headline.find("1 outcome better"), std::string::npos);
  EXPECT_EQ(FormatTable(comparison).find("mended") != std::string::npos, code == ExitCode::kPass);
  EXPECT_EQ(FormatJUnit(comparison).find("errors=\"1\"") != std::string::npos,
            code == ExitCode::kInconclusive);
  return comparison.cases[0];
}

TEST(CompareTest, AFailureThatIsGoneHidesNoTime) {
  EXPECT_EQ(MendedCase(SidesOf(10, 100, 100), ExitCode::kPass).change, Change::kSame);
  EXPECT_EQ(MendedCase(SidesOf(10, 100, 80), ExitCode::kPass).change, Change::kFaster);
  EXPECT_EQ(MendedCase(SidesOf(10, 100, 300), ExitCode::kRegression).change, Change::kSlower);
  Sides few = SidesOf(10, 100, 300);
  few.candidate.resize(3);
  const CaseComparison open = MendedCase(few, ExitCode::kInconclusive);
  EXPECT_EQ(open.change, Change::kAmbiguous);
  EXPECT_EQ(open.why.find("no longer fail: hang (0 of 3 launches, before 1 of 10); "), 0u);
  EXPECT_NE(open.resolve, "");
  Sides untimed = SidesOf(10, 100, 100);
  untimed.candidate[1].cases[0].median_ns = kNan;
  EXPECT_EQ(MendedCase(untimed, ExitCode::kInconclusive).change, Change::kAmbiguous);
  untimed = SidesOf(10, 100, kNan);
  EXPECT_EQ(MendedCase(untimed, ExitCode::kInconclusive).change, Change::kMissing);
}

TEST(CompareTest, MoreFailuresAmongSomeNeedProof) {
  const auto change = [](int base_failures, int candidate_failures) {
    Sides sides;
    for (int i = 0; i < 10; ++i) {
      const auto launch = [](bool fails) {
        return fails ? LaunchWith(kNan, verdict::Verdict::kFail, "fail: hang") : LaunchWith(100);
      };
      sides.base.push_back(launch(i < base_failures));
      sides.candidate.push_back(launch(i < candidate_failures));
    }
    return OnlyCase(sides);
  };
  EXPECT_EQ(change(1, 2).outcome_change, OutcomeChange::kNone);
  EXPECT_EQ(change(1, 2).change, Change::kAmbiguous);  // it fails: nothing else is said
  EXPECT_EQ(change(1, 10).outcome_change, OutcomeChange::kWorse);
  EXPECT_EQ(change(3, 0).outcome_change, OutcomeChange::kBetter);
  EXPECT_EQ(change(3, 0).change, Change::kSame);
  EXPECT_EQ(change(10, 1).outcome_change, OutcomeChange::kNone) << "it still fails";
}

TEST(CompareTest, AnUnknownOutcomeIsAmbiguous) {
  Sides sides = SidesOf(8, 100, 100);
  sides.candidate.back().cases.front().verdict = verdict::Verdict::kUnknown;
  sides.candidate.back().cases.front().outcome = "unknown";
  EXPECT_EQ(OnlyCase(sides).change, Change::kAmbiguous);
}

// Four launches a side without a time, as of a case that hangs or that was never begun.
Sides Untimed(verdict::Verdict base, verdict::Verdict candidate, bool trials) {
  Sides sides;
  for (int i = 0; i < 4; ++i) {
    sides.base.push_back(LaunchWith(kNan, base, std::string(verdict::NameOf(base))));
    sides.candidate.push_back(LaunchWith(kNan, candidate, std::string(verdict::NameOf(candidate))));
    sides.base.back().cases.front().is_trial = trials;
    sides.candidate.back().cases.front().is_trial = trials;
  }
  return sides;
}

TEST(CompareTest, WhatIsNotKnownIsNeitherMendedNorBroken) {
  using verdict::Verdict;
  for (const bool trials : {false, true}) {
    const auto code = [trials](Verdict base, Verdict candidate) {
      const Sides sides = Untimed(base, candidate, trials);
      return Compare(sides.base, sides.candidate, {}).exit_code;
    };
    EXPECT_EQ(code(Verdict::kFail, Verdict::kUnknown), ExitCode::kInconclusive) << trials;
    EXPECT_EQ(code(Verdict::kUnknown, Verdict::kFail), ExitCode::kInconclusive) << trials;
    EXPECT_EQ(code(Verdict::kUnknown, Verdict::kPass), ExitCode::kInconclusive) << trials;
    EXPECT_EQ(code(Verdict::kUnknown, Verdict::kUnknown), ExitCode::kInconclusive) << trials;
  }
  Sides sides = Untimed(Verdict::kFail, Verdict::kPass, true);
  EXPECT_EQ(OnlyCase(sides).outcome_change, OutcomeChange::kBetter);
  sides.candidate.front().cases.front().verdict = Verdict::kUnknown;
  EXPECT_EQ(OnlyCase(sides).outcome_change, OutcomeChange::kNone) << "one may still fail";
  sides = Untimed(Verdict::kUnknown, Verdict::kFail, true);
  sides.base.front().cases.front().verdict = Verdict::kPass;
  EXPECT_EQ(OnlyCase(sides).why, "now fail (4 of 4 launches, before 0 of 1)");
}

TEST(CompareTest, TrialsOfStressAreJudgedByTheirOutcome) {
  Sides sides = SidesOf(1, kNan, kNan);
  for (std::vector<Launch>* side : {&sides.base, &sides.candidate}) {
    side->front().cases.front().is_trial = true;
  }
  EXPECT_EQ(OnlyCase(sides).change, Change::kSame);
  sides.candidate.front().cases.front().verdict = verdict::Verdict::kFail;
  EXPECT_EQ(OnlyCase(sides).outcome_change, OutcomeChange::kWorse);
  sides.candidate.front().cases.clear();
  EXPECT_EQ(OnlyCase(sides).change, Change::kMissing);
  EXPECT_EQ(OnlyCase(sides).why, "not in candidate");
}

TEST(CompareTest, ALaunchThatFailedBeforeItsCasesIsSeen) {
  Sides sides = SidesOf(8, 100, 100);
  sides.candidate.back().verdict = verdict::Verdict::kFail;
  sides.candidate.back().outcome = "fail: init_failure";
  sides.candidate.back().cases.clear();
  const LaunchComparison comparison = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(comparison.exit_code, ExitCode::kRegression);
  EXPECT_EQ(comparison.cases.front().name, "(launch)");
}

TEST(CompareTest, WithoutACaseNothingIsCompared) {
  Sides sides = SidesOf(4, kNan, 100);
  for (Launch& launch : sides.base) {
    launch.cases[0].verdict = verdict::Verdict::kFail;
    launch.cases[0].outcome = "fail: data_corrupt";
  }
  const LaunchComparison untimed = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(untimed.exit_code, ExitCode::kInconclusive);
  EXPECT_EQ(untimed.headline.find("INCONCLUSIVE: 1 outcome better, no case was compared (of 1"), 0u)
      << untimed.headline;

  sides = SidesOf(8, 100, 100);
  sides.base[0].verdict = verdict::Verdict::kFail;
  sides.base[0].cases.clear();
  CompareOptions none;
  none.cases = "nothing";
  EXPECT_EQ(Compare(sides.base, sides.candidate, none).exit_code, ExitCode::kInconclusive);
}

// Rank 2 of 4 takes 6 % longer than its peers; noise of 30 % meets all ranks of a launch alike.
TEST(CompareTest, ASlowRankIsNamedAlthoughTheCaseIsNoisy) {
  Sides sides;
  for (int i = 0; i < 12; ++i) {
    for (const bool slow : {false, true}) {
      const double common = 100 * (1 + 0.3 * ((i * 5 + (slow ? 1 : 0)) % 7) / 7);
      std::vector<double> excess(4);
      for (std::size_t r = 0; r < 4; ++r) {
        excess[r] = 0.002 * common * static_cast<double>((static_cast<std::size_t>(i) + r) % 3);
      }
      if (slow) excess[2] += 0.06 * common;
      Launch launch = LaunchWith(common * (slow ? 1.06 : 1));
      launch.cases.front().by_rank = {{"leaves later", excess}};
      (slow ? sides.candidate : sides.base).push_back(std::move(launch));
    }
  }
  const CaseComparison one = OnlyCase(sides);
  ASSERT_EQ(one.slower_ranks.size(), 1u);
  EXPECT_EQ(one.slower_ranks[0].rank, 2);
  EXPECT_NEAR(one.slower_ranks[0].effect.estimate, 0.06, 0.01);
  EXPECT_EQ(one.change, Change::kSlower);
  EXPECT_NE(one.why.find("rank 2 leaves later than its peers (+"), std::string::npos) << one.why;
}

TEST(InterleavedTest, SidesInTurnAre) {
  using Times = std::vector<std::string>;
  EXPECT_TRUE(AreInterleaved(Times{"1", "3", "5"}, Times{"2", "4", "6"}));
  EXPECT_TRUE(AreInterleaved(Times{"1", "4", "5", "8"}, Times{"2", "3", "6", "7"}));
  EXPECT_FALSE(AreInterleaved(Times{"1", "2", "3"}, Times{"4", "5", "6"}));
  EXPECT_FALSE(AreInterleaved(Times{"4", "5", "6"}, Times{"1", "2", "3"}));
  EXPECT_FALSE(
      AreInterleaved(Times{"1", "2", "3", "7", "8", "9"}, Times{"41", "42", "5", "61", "62"}));
}

TEST(LaunchesNeededTest, TheFewestDependOnTheNumberOfTests) {
  EXPECT_EQ(FewestToDecide(1), 5u);  // 2 / 252 <= 1 %
  EXPECT_EQ(FewestToDecide(2), 6u);  // 2 / 924 <= 0.5 %
  EXPECT_EQ(FewestToDecide(100), 9u);
}

TEST(LaunchesNeededTest, IntervalsNarrowWithTheirRoot) {
  stats::Shift shift;
  shift.estimate = 0.03;
  shift.low = -0.03;
  shift.high = 0.09;
  Circumstances with;
  with.min_effect = 0.02;
  EXPECT_EQ(NeedLaunches(shift, {10, 10}, with).more, 30u);  // half the width, 4 times as many
  shift.high = 0.4;
  EXPECT_EQ(NeedLaunches(shift, {10, 10}, with).more, 0u);
  EXPECT_NE(NeedLaunches(shift, {10, 10}, with).resolve.find("--min-effect=50%"),
            std::string::npos);
  shift.high = 2;  // nobody takes 639 % for nothing
  EXPECT_EQ(NeedLaunches(shift, {10, 10}, with).resolve, "a quieter machine");
}

TEST(EnvironmentTest, WhatDiffersIsListed) {
  Sides sides = SidesOf(4, 1, 1);
  int n = 0;
  for (std::vector<Launch>* side : {&sides.base, &sides.candidate}) {
    for (Launch& launch : *side) {
      const bool candidate = side == &sides.candidate;
      launch.facts = {{"host/driver", candidate ? "580" : "570"},
                      {"host/free", fmt::format("{}", ++n)},
                      {"host/memory_available", candidate ? "5" : "4"},
                      {"variables/NCCL_ALGO", candidate && n % 2 == 0 ? "Ring" : "Tree"},
                      {"software/mpi", "4.1.4"}};
      if (candidate) launch.facts.emplace_back("variables/NEW", "1");
      launch.floors = {{"copy_gbps_alone", (candidate ? 8 : 10) + 0.001 * n}, {"line_ns", 200}};
    }
  }
  const std::vector<Difference> all = DifferencesOf(sides.base, sides.candidate);
  std::vector<std::string> texts;
  for (const Difference& one : all) {
    texts.push_back(one.fact + ": " + one.base + " -> " + one.candidate);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"host/driver: 570 -> 580", "variables/NEW: none -> 1",
                                             "variables/NCCL_ALGO: Tree -> Ring (2), Tree (2)"}));
}

TEST(EnvironmentTest, OfLongValuesItIsShownWhereTheyDiffer) {
  Sides sides = SidesOf(1, 1, 1);
  const std::string command = "/opt/lockstep/bin/bench_sharding --backend=gloo --precision=0.01 ";
  sides.base[0].facts = {{"command", command + "--decode-passes=1 --time-budget=20s --workers=4"}};
  sides.candidate[0].facts = {{"command", command + "--decode-passes=2 --time-budget=20s"}};
  const std::vector<Difference> all = DifferencesOf(sides.base, sides.candidate);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].base.find("--decode-passes=1"), std::string::npos) << all[0].base;
  EXPECT_NE(all[0].candidate.find("--decode-passes=2"), std::string::npos) << all[0].candidate;
  EXPECT_LE(all[0].base.size(), 60u);
}

TEST(EnvironmentTest, FloorsNeedMoreThanFourLaunches) {
  Sides sides = SidesOf(6, 1, 1);
  for (Launch& launch : sides.base) launch.floors = {{"copy_gbps_alone", 10}};
  for (Launch& launch : sides.candidate) launch.floors = {{"copy_gbps_alone", 8}};
  const std::vector<Difference> all = DifferencesOf(sides.base, sides.candidate);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].fact, "floor copy_gbps_alone");
  EXPECT_EQ(all[0].candidate, "8.00 (-20 %)");
}

TEST(MinEffectTest, TheLastRuleThatMatchesHolds) {
  MinEffects effects;
  EXPECT_EQ(effects.Of("a"), MinEffects::kDefault);
  ASSERT_TRUE(effects.Add("5%").ok());
  ASSERT_TRUE(effects.Add("all_reduce/*=0.03").ok());
  ASSERT_TRUE(effects.Add("ddp_step/cap=25*=8%").ok());
  EXPECT_EQ(effects.Of("broadcast/8"), 0.05);
  EXPECT_EQ(effects.Of("all_reduce/f32/sum/8"), 0.03);
  EXPECT_EQ(effects.Of("ddp_step/cap=25/x"), 0.08);
  for (const char* wrong : {"", "%", "-3%", "0", "x", "a=", "=3%", "1e9%", "nan", "3%%"}) {
    EXPECT_FALSE(effects.Add(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::results::compare
