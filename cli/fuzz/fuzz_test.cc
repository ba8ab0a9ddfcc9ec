// Which kind of program a seed draws, and that a wrong verdict is found again by its seed and kind.
#include "cli/fuzz/campaign.h"
#include "core/verdict/judge.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::cli::fuzz {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

verdict::Judgement RightJudge(const std::vector<verdict::RankEvidence>& evidence,
                              const verdict::Setting& setting) {
  return verdict::Judge(evidence, setting);
}

verdict::Judgement FindsNothing(const std::vector<verdict::RankEvidence>& evidence,
                                const verdict::Setting& setting) {
  verdict::Judgement judgement = verdict::Judge(evidence, setting);
  judgement.findings.clear();
  return judgement;
}

Campaign<Counts> Try(const TrialOptions& options, const Kinds& kinds,
                     const stress::fuzz::Judging& judge = RightJudge) {
  return RunCampaign<Counts>(
      options, [&](std::uint64_t seed) { return Assess(seed, KindOf(kinds, seed), judge); });
}

TEST(Fuzz, DrawsAllKindsInTurn) {
  const Campaign<Counts> all = Try({.seed = 1, .trials = 80}, AllKinds());
  EXPECT_FALSE(all.failed);
  EXPECT_EQ(all.counts.collectives.trials, 60);
  EXPECT_EQ(all.counts.messages.trials, 20);
  EXPECT_THAT(Describe(all), StartsWith("80 trials in "));
  EXPECT_THAT(Describe(all), HasSubstr("no wrong verdict\n  60 of collectives: "));
  EXPECT_THAT(Describe(all), HasSubstr("\n  20 of messages: "));
}

TEST(Fuzz, DrawsOneKindAlone) {
  const Campaign<Counts> messages = Try({.seed = 1, .trials = 80}, {kMessages});
  EXPECT_EQ(messages.counts.collectives.trials, 0);
  EXPECT_EQ(messages.counts.messages.trials, 80);
  EXPECT_GT(messages.counts.messages.hangs, 0);
  EXPECT_THAT(Describe(messages), Not(HasSubstr("collectives")));
}

TEST(Fuzz, AWrongVerdictIsFoundAgainBySeedAndKind) {
  const Campaign<Counts> wrong = Try({.seed = 1, .trials = 80}, AllKinds(), FindsNothing);
  ASSERT_TRUE(wrong.failed);
  const Kind kind = KindOf(AllKinds(), *wrong.failed);
  ASSERT_TRUE(kind);
  const std::string why = Assess(*wrong.failed, kind, FindsNothing).wrong;
  EXPECT_NE(why, "");
  EXPECT_EQ(Assess(*wrong.failed, kind, RightJudge).wrong, "");
  EXPECT_THAT(DescribeFailure(*wrong.failed, kind, FindsNothing), HasSubstr(KindOfFailure(why)));
}

}  // namespace
}  // namespace lockstep::cli::fuzz
