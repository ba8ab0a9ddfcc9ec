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

// Iteration `iteration` under no_sync(): gradients stay on the rank.
History& Accumulates(History& history, int iteration) {
  return history.Iteration(iteration).In(journal::Phase::kForward).In(journal::Phase::kBackward);
}

TEST(UnevenInputs, IterationsUnderNoSyncCount) {
  const auto accumulated = [](int rank) {
    History history = Trained(rank, 3);
    return Accumulates(history, 3);
  };
  History more = accumulated(0);
  more.Iteration(4).In(journal::Phase::kForward).In(journal::Phase::kBackward);
  more.As(journal::Purpose::kBucket).Enters(AllReduce());
  const auto text = [&](const std::vector<RankEvidence>& ended) {
    std::vector<RankEvidence> evidence = {more};
    evidence.insert(evidence.end(), ended.begin(), ended.end());
    const Judgement judgement = JudgeOnGloo(evidence);
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnevenInputs);
    EXPECT_THAT(judgement.findings[0].message, HasSubstr("rank 0 has more and is in all_reduce 4"));
    return judgement.findings[0].message;
  };
  EXPECT_THAT(text({Ended(accumulated(1))}), HasSubstr("rank 1 had inputs for 4 iterations and"));
  EXPECT_THAT(text({Ended(Trained(1, 3))}), HasSubstr("rank 1 had inputs for 3 iterations and"));
  EXPECT_THAT(text({Ended(Trained(1, 3)), Ended(accumulated(2))}),
              HasSubstr("ranks 1 and 2 had inputs for 3 to 4 iterations and"));
}

// Of a shortened journal nobody knows how many backward passes it lacks.
TEST(UnevenInputs, NotCountedAcrossAGapOfTheJournal) {
  RankEvidence ended = Ended(Trained(1, 3));
  for (journal::JournalEvent& event : ended.journal.events) {
    if (event.phase == journal::Phase::kFinalize) event.index += 1000;
  }
  ended.journal.missed = 1000;
  History more = Trained(0, 3);
  more.Iteration(3).In(journal::Phase::kBackward).As(journal::Purpose::kBucket);
  more.Enters(AllReduce());
  EXPECT_EQ(JudgeOnGloo({more, ended}).findings.at(0).cause, Cause::kRankExited);
}

}  // namespace
}  // namespace lockstep::verdict::finders
