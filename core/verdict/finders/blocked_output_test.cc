// A pipe that nobody reads: where it is named, and where another cause stays.
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RankEvidence InWrite(History history, double silent, std::string channel = "anon_pipe_write") {
  RankEvidence evidence = history.Silent(silent);
  evidence.system = "waiting in write, 0 % CPU [" + channel + "]; stack: write@libc.so.6 < main";
  return evidence;
}

TEST(OutputBlocked, TheRankThatPrintsIsNamedAndTheSilenceIsItsEvidence) {
  const Judgement judgement = JudgeAll({At50(0).Silent(6), InWrite(After49(1), 6)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kOutputBlocked);
  EXPECT_THAT(finding.culprits, ElementsAre(1));
  EXPECT_THAT(finding.message,
              HasSubstr("rank 1 waits in write() for room in a pipe that nobody reads, for 6.0 s"));
  EXPECT_EQ(finding.evidence.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
}

// A library that logs while it connects or communicates.
TEST(OutputBlocked, InsideTheLibraryToo) {
  EXPECT_EQ(JudgeAll({At50(0).Silent(6), InWrite(At50(1), 6)}).findings.at(0).cause,
            Cause::kOutputBlocked);
  const Judgement connecting = JudgeAll({History(0).In(journal::Phase::kConnect).Silent(6),
                                         InWrite(History(1).In(journal::Phase::kConnect), 6)});
  EXPECT_EQ(connecting.findings.at(0).cause, Cause::kOutputBlocked);
  EXPECT_THAT(connecting.findings[0].culprits, ElementsAre(1));
}

// Whoever reads late reads too.
TEST(OutputBlocked, IsNeverProvedAndNeedsTheDeadline) {
  EXPECT_FALSE(JudgeAll({At50(0).Silent(60), InWrite(After49(1), 60)}).findings.at(0).proved);
  EXPECT_TRUE(JudgeAll({At50(0).Silent(4), InWrite(After49(1), 4)}).findings.empty());
  EXPECT_EQ(JudgeAll({At50(0).Silent(6), InWrite(After49(1), 0.1)}).findings.at(0).cause,
            Cause::kRankBusy);
}

TEST(OutputBlocked, AnotherWriteOrAnotherWordIsNone) {
  for (const char* const channel : {"sk_stream_wait_memory", "wait_woken", "pipe_read"}) {
    EXPECT_EQ(JudgeAll({At50(0).Silent(6), InWrite(After49(1), 6, channel)}).findings.at(0).cause,
              Cause::kRankBusy)
        << channel;
  }
  RankEvidence sleeper = After49(1).Silent(6).Asleep(
      "asleep in nanosleep [hrtimer_nanosleep]; stack: waiting in write [pipe_write]");
  EXPECT_EQ(JudgeAll({At50(0).Silent(6), sleeper}).findings.at(0).cause, Cause::kRankBusy);
}

TEST(OutputBlocked, AnotherBusyRankKeepsTheGeneralCause) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), InWrite(After49(1), 6), After49(2).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1, 2));
}

TEST(OutputBlocked, ADeadRankIsProvedAndComesFirst) {
  const Judgement judgement =
      JudgeAll({At50(0).Silent(6), InWrite(After49(1), 6), After49(2).Signalled(9)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankKilled);
  EXPECT_TRUE(judgement.findings[0].proved);
}

}  // namespace
}  // namespace lockstep::verdict::finders
