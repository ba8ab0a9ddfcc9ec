// How many inputs a rank had, and in which call the others miss it.
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const collective::Operation kOneBuffer = {.collective = collective::Collective::kBroadcast,
                                          .count = 8};

// One iteration of a model with one bucket.
History& TrainOnce(History& history, int iteration) {
  return history.Iteration(iteration)
      .In(journal::Phase::kForward)
      .In(journal::Phase::kBackward)
      .As(journal::Purpose::kBucket)
      .Does(AllReduce());
}

History Trained(int rank, int iterations) {
  History history(rank);
  for (int i = 0; i < iterations; ++i) TrainOnce(history, i);
  return history;
}

History Ended(History history) { return history.In(journal::Phase::kFinalize).Leaves(0); }

Judgement JudgeOnGloo(const std::vector<RankEvidence>& evidence) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = "gloo";
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

// Buffers are several broadcasts: behind the one that failed, the next are queued.
TEST(UnevenInputs, TheCallThatFailedIsNamedNotOneThatIsQueuedBehindIt) {
  const History waits = Trained(0, 2)
                            .Iteration(2)
                            .In(journal::Phase::kForward)
                            .As(journal::Purpose::kBufferBroadcast, 0)
                            .FailsIn(kOneBuffer)
                            .As(journal::Purpose::kBufferBroadcast, 1)
                            .Queues(kOneBuffer)
                            .Reports("gloo: Connection closed by peer")
                            .Leaves(1);
  const Judgement judgement = JudgeOnGloo({waits, Ended(Trained(1, 2))});
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kUnevenInputs);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 has more and is in broadcast 1 "));
  EXPECT_THAT(judgement.findings[0].headline.text(), HasSubstr("broadcast 1 (buffers 0)"));
}

}  // namespace
}  // namespace lockstep::verdict::finders
