// What options do in literal runs, and what is recommended.
#include "bench/measure/effects.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/random.h"

namespace lockstep::bench::measure {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Settings = std::vector<std::pair<std::string, std::string>>;

// In a TEST, Run alone is a member of testing::Test.
using Launch = results::store::Run;

constexpr std::uint64_t kSeed = 20261121;

// A case of two ranks, one sample a round. The machine drifts by a factor of two over the rounds,
// the same for all cases; `noise` is each sample's own.
results::store::CaseRecord Case(const Settings& settings, double ns, double noise, int rounds,
                                Random& random) {
  results::store::CaseRecord record;
  record.model = "tiny";
  record.settings = settings;
  record.samples.ranks = 2;
  for (int round = 0; round < rounds; ++round) {
    const double drift = 1 + static_cast<double>(round) / rounds;
    const double took = ns * drift * (1 + noise * (random.Uniform() - 0.5));
    record.samples.round.push_back(round);
    record.samples.entry_ns.insert(record.samples.entry_ns.end(), {1000, 1100});
    record.samples.exit_ns.insert(record.samples.exit_ns.end(),
                                  {1000 + static_cast<std::int64_t>(took), 1200});
  }
  return record;
}

Launch Compare(const std::vector<std::pair<Settings, double>>& cases, double noise,
               int rounds = 30) {
  Random random(kSeed);
  Launch run;
  for (const auto& [settings, ns] : cases) {
    run.cases.push_back(Case(settings, ns, noise, rounds, random));
    run.cases.back().name = fmt::format("case {}", run.cases.size());
  }
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, run);
  return run;
}

TEST(Effects, DriftThatAllCasesShareCancels) {
  const auto run =
      Compare({{{{"bucket_cap_mb", "default"}}, 1e6}, {{{"bucket_cap_mb", "10"}}, 8e5}}, 0.02);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_EQ(run.effects[0].case_index, 1);
  EXPECT_EQ(run.effects[0].baseline, 0);
  EXPECT_EQ(run.effects[0].rounds, 29);  // but for the one that calibrates
  EXPECT_NEAR(run.effects[0].ratio, 1.25, 0.01);
  EXPECT_GT(run.effects[0].interval_low, 1.23);
  EXPECT_LT(run.effects[0].interval_high, 1.27);
  EXPECT_THAT(run.recommendation,
              HasSubstr("tiny: bucket_cap_mb=10: 1.25 times faster than the default (95 %: 1.2"));
}

TEST(Effects, NoiseIsNoEffectAndResolvesNothingBelowIt) {
  const auto run =
      Compare({{{{"bucket_cap_mb", "default"}}, 1e6}, {{{"bucket_cap_mb", "10"}}, 1e6}}, 0.2);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_LT(run.effects[0].interval_low, 1);
  EXPECT_GT(run.effects[0].interval_high, 1);
  const double most = 100 * (run.effects[0].interval_high - 1);
  EXPECT_GT(most, 1);
  EXPECT_EQ(run.recommendation,
            fmt::format("tiny: keep the defaults: 29 rounds resolve no gain; bucket_cap_mb=10 may "
                        "be faster by up to {:.1f} %",
                        most));
  const auto quiet =
      Compare({{{{"bucket_cap_mb", "default"}}, 1e6}, {{{"bucket_cap_mb", "10"}}, 1e6}}, 0.002);
  EXPECT_GT(quiet.effects.at(0).interval_high, 1);
  EXPECT_EQ(quiet.recommendation,
            "tiny: keep the defaults: in 29 rounds no option made a step faster by 1 % or more");
}

TEST(Effects, FewRoundsTellWhatIsLarge) {
  const auto compare = [](double ns) {
    return Compare({{{{"bucket_cap_mb", "default"}}, 1e6}, {{{"bucket_cap_mb", "10"}}, ns}}, 0.01,
                   6);
  };
  EXPECT_THAT(compare(1e6).recommendation,
              StartsWith("tiny: undecided after 5 rounds; no option looks faster; the nearest is "
                         "bucket_cap_mb=10: as fast as the default (95 %: "));
  EXPECT_THAT(compare(9e5).recommendation,
              StartsWith("tiny: undecided after 5 rounds; best is bucket_cap_mb=10: 1."));
  const auto twice = compare(5e5);
  EXPECT_THAT(twice.recommendation, HasSubstr("bucket_cap_mb=10: 2.0 times faster"));
  EXPECT_LT(twice.effects.at(0).interval_low, 1.7);
}

TEST(Effects, WhatIsSlowerIsNeverCalledBest) {
  const auto run = Compare({{{{"hook", "none"}}, 1e6}, {{{"hook", "bf16"}}, 2e6}}, 1.5, 4);
  ASSERT_LT(run.effects.at(0).ratio, 1);
  ASSERT_GT(run.effects[0].interval_high, 1) << "it is not slower for sure";
  EXPECT_THAT(run.recommendation,
              StartsWith("tiny: undecided after 3 rounds; no option looks faster; the nearest is "
                         "hook=bf16: "));
  EXPECT_THAT(run.recommendation, HasSubstr(" times slower than none (95 %: "));
}

TEST(Effects, AnOptionOfWhichLittleIsKnownMayGain) {
  Random random(kSeed);
  Launch run;
  run.cases = {Case({{"hook", "none"}}, 1e6, 0, 30, random),
               Case({{"hook", "bf16"}}, 164e4, 0, 30, random),
               Case({{"hook", "fp16"}}, 8.2e5, 1.9, 30, random)};
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, run);
  ASSERT_EQ(run.effects.size(), 2u);
  EXPECT_THAT(run.recommendation, StartsWith("tiny: undecided after 29 rounds; best is hook=fp16"));
  EXPECT_THAT(run.recommendation, HasSubstr("hook=bf16: 1.64 times slower than none"));
}

TEST(Effects, OfSeveralCapsTheBestIsRecommended) {
  const auto run = Compare({{{{"bucket_cap_mb", "default"}}, 1e6},
                            {{{"bucket_cap_mb", "1"}}, 12e5},
                            {{{"bucket_cap_mb", "5"}}, 9e5},
                            {{{"bucket_cap_mb", "10"}}, 7e5}},
                           0.02);
  ASSERT_EQ(run.effects.size(), 3u);
  EXPECT_LT(run.effects[0].interval_high, 1);
  EXPECT_THAT(run.recommendation, HasSubstr("bucket_cap_mb=10"));
  EXPECT_THAT(run.recommendation, Not(HasSubstr("bucket_cap_mb=5")));
}

TEST(Effects, WhatIsSlowerIsNotRecommended) {
  const auto run = Compare({{{{"comm_hook", "none"}}, 1e6}, {{{"comm_hook", "bf16"}}, 164e4}}, 0);
  EXPECT_EQ(run.recommendation,
            "tiny: keep the defaults: in 29 rounds no option made a step faster by 1 % or more; "
            "comm_hook=bf16: 1.64 times slower than none (95 %: 1.64 to 1.64)");
}

TEST(Effects, OfEachOptionTheBestIsRecommendedAndWhatIsSlowerIsNot) {
  const auto run = Compare({{{{"buffers", "true"}, {"hook", "none"}}, 1e6},
                            {{{"buffers", "false"}, {"hook", "none"}}, 8e5},
                            {{{"buffers", "true"}, {"hook", "fp16"}}, 9e5},
                            {{{"buffers", "true"}, {"hook", "bf16"}}, 5e5},
                            {{{"buffers", "true"}, {"hook", "powersgd"}}, 3e6}},
                           0.001);
  EXPECT_EQ(run.recommendation,
            "tiny: buffers=false: 1.25 times faster than true (95 %: 1.25 to 1.25); "
            "hook=bf16: 2.00 times faster than none (95 %: 2.00 to 2.00); each alone");
}

TEST(Effects, AGainOfLessThanAPercentIsNone) {
  const auto run = Compare({{{{"hook", "none"}}, 1e6}, {{{"hook", "bf16"}}, 996e3}}, 0);
  EXPECT_THAT(run.recommendation, EndsWith("faster by 1 % or more"));
}

TEST(Effects, EachOptionHasItsOwnBaselineAndModelsHaveNone) {
  const auto run = Compare({{{{"hook", "none"}, {"model", "a"}}, 1e6},
                            {{{"hook", "fp16"}, {"model", "a"}}, 1e6},
                            {{{"hook", "none"}, {"model", "b"}}, 1e6},
                            {{{"hook", "fp16"}, {"model", "b"}}, 1e6}},
                           0.01);
  ASSERT_EQ(run.effects.size(), 2u);
  EXPECT_EQ(run.effects[0].baseline, 0);
  EXPECT_EQ(run.effects[1].case_index, 3);
  EXPECT_EQ(run.effects[1].baseline, 2);
}

TEST(Effects, RoundsThatOneRankDidNotCompleteDoNotCount) {
  Random random(kSeed);
  Launch run;
  run.cases = {Case({{"o", "1"}}, 1e6, 0.01, 20, random),
               Case({{"o", "2"}}, 1e6, 0.01, 20, random)};
  for (std::size_t k = 20; k < 40; ++k)
    run.cases[1].samples.exit_ns[k] = results::store::Samples::kNoTime;
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, run);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_EQ(run.effects[0].rounds, 9);
}

// Wrong data are no alternative, however soon they are there.
TEST(Effects, ACaseThatFailedIsNeitherComparedNorRecommended) {
  Random random(kSeed);
  Launch run;
  run.cases = {Case({{"hook", "none"}}, 1e6, 0, 30, random),
               Case({{"hook", "fp16"}}, 5e5, 0, 30, random),
               Case({{"hook", "bf16"}}, 8e5, 0, 30, random)};
  run.cases[1].judgement.verdict = verdict::Verdict::kFail;
  Launch without_default = run;
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, run);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_EQ(run.effects[0].value, "bf16");
  EXPECT_THAT(run.recommendation, StartsWith("tiny: hook=bf16: 1.25 times faster than none"));
  EXPECT_THAT(run.recommendation, Not(HasSubstr("fp16")));
  without_default.cases[0].judgement.verdict = verdict::Verdict::kFail;
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, without_default);
  EXPECT_TRUE(without_default.effects.empty());
  EXPECT_EQ(without_default.recommendation, "");
}

// The first repetition alone would recommend what is slower in the others.
TEST(Effects, RepetitionsCountTogether) {
  Random random(kSeed);
  Launch run;
  for (int repetition = 0; repetition < 3; ++repetition) {
    const double fp16_ns = repetition == 0 ? 8e5 : 2e6;
    run.cases.push_back(Case({{"hook", "none"}}, 1e6, 0, 10, random));
    run.cases.push_back(Case({{"hook", "fp16"}}, fp16_ns, 0, 10, random));
    for (std::size_t i = run.cases.size() - 2; i < run.cases.size(); ++i) {
      run.cases[i].repetition = repetition;
    }
  }
  Launch wrong = run;
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, run);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_EQ(run.effects[0].case_index, 1);
  EXPECT_EQ(run.effects[0].rounds, 3 * 9);  // each repetition's first calibrates
  EXPECT_THAT(run.recommendation, StartsWith("tiny: undecided after 27 rounds"));
  wrong.cases[5].judgement.verdict = verdict::Verdict::kFail;
  AddEffects(/*calibrates=*/true, /*by_mean=*/false, wrong);
  EXPECT_TRUE(wrong.effects.empty()) << "a repetition failed";
}

// Of four samples three find their batch, and one waits for all four.
TEST(Effects, OfSamplesThatAreNotAlikeTheMeanIsCompared) {
  Random random(kSeed);
  const auto burst = [&random](const std::string& slow_down, double longest_ns) {
    results::store::CaseRecord record = Case({{"slow_down", slow_down}}, 1e3, 0, 0, random);
    for (int row = 0; row < 40; ++row) {
      const auto took = static_cast<std::int64_t>(row % 4 == 0 ? longest_ns : 1e3);
      record.samples.round.push_back(row / 4);
      record.samples.entry_ns.insert(record.samples.entry_ns.end(), {0, 0});
      record.samples.exit_ns.insert(record.samples.exit_ns.end(), {took, took});
    }
    return record;
  };
  Launch run;
  run.cases = {burst("1", 97e3), burst("10", 997e3)};
  AddEffects(/*calibrates=*/false, /*by_mean=*/true, run);
  ASSERT_EQ(run.effects.size(), 1u);
  EXPECT_NEAR(run.effects[0].ratio, 0.1, 1e-9);
  run.effects.clear();
  AddEffects(/*calibrates=*/false, /*by_mean=*/false, run);
  EXPECT_EQ(run.effects.at(0).ratio, 1) << "what a median sees of it";
}

TEST(Effects, ARunWithoutSettingsHasNone) {
  const auto run = Compare({{{}, 1e6}, {{}, 2e6}}, 0.01);
  EXPECT_TRUE(run.effects.empty());
  EXPECT_EQ(run.recommendation, "");
}

}  // namespace
}  // namespace lockstep::bench::measure
