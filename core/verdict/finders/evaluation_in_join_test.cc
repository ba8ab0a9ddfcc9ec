// One rank evaluates through DistributedDataParallel inside join(): each forward pass tells the
// ranks that joined of itself, so that they shadow a training iteration that does not come.
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const collective::Operation kJoinFlag = AllReduce(1);
const collective::Operation kGradients = AllReduce(64);

// What a forward pass calls without buffers.
History& ForwardInJoin(History& history, journal::Phase phase) {
  history.In(phase).As(journal::Purpose::kJoinAlive).Does(kJoinFlag);
  return history.As(journal::Purpose::kJoinShouldSync).Does(kJoinFlag);
}
// Rank 1 has joined where it says so, rank 0 trains.
History TrainsInJoin(int rank, int iterations, int joins_after) {
  History history(rank);
  for (int i = 0; i < iterations; ++i) {
    const bool joined = i >= joins_after;
    history.Iteration(joined ? -1 : i);
    ForwardInJoin(history, joined ? journal::Phase::kJoinExit : journal::Phase::kForward);
    if (!joined) history.In(journal::Phase::kBackward);
    history.As(joined ? journal::Purpose::kJoinShadowBucket : journal::Purpose::kBucket);
    history.Does(kGradients);
  }
  return history;
}
// It waits for gradients in an iteration more.
History WaitsInJoin(int rank, int iterations, int joins_after) {
  History history = TrainsInJoin(rank, iterations, joins_after);
  const bool joined = iterations >= joins_after;
  history.Iteration(joined ? -1 : iterations);
  ForwardInJoin(history, joined ? journal::Phase::kJoinExit : journal::Phase::kForward);
  if (!joined) history.In(journal::Phase::kBackward);
  history.As(joined ? journal::Purpose::kJoinShadowBucket : journal::Purpose::kBucket);
  return history.Enters(kGradients).Silent(6);
}
// It evaluates after two iterations, and is in `next` of the next forward pass.
History EvaluatesInJoin(int rank, int inputs, journal::Phase next) {
  History history = TrainsInJoin(rank, 2, 9);
  for (int i = 0; i < inputs; ++i) ForwardInJoin(history, journal::Phase::kEvaluate);
  if (next == journal::Phase::kForward) history.Iteration(2);
  return history.In(next).As(journal::Purpose::kJoinAlive).Enters(kJoinFlag).Silent(6);
}

Judgement JudgeJoin(const std::vector<RankEvidence>& evidence) {
  const Judgement judgement =
      Judge(evidence, {.deadline_seconds = kDeadline, .backend = "nccl", .one_stream = true});
  ExpectReadable(judgement);
  return judgement;
}

TEST(EvaluationInJoin, TheOthersShadowTraining) {
  const Judgement judgement = JudgeJoin({EvaluatesInJoin(0, 1, journal::Phase::kEvaluate),
                                         WaitsInJoin(1, 2, 1), WaitsInJoin(2, 2, 0)});
  ASSERT_FALSE(judgement.findings.empty());
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kOneSidedEvaluation);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(0));
  EXPECT_EQ(finding.headline.text(),
            "rank 0 evaluates through DistributedDataParallel in all_reduce 9 (join: alive); ranks "
            "1 and 2 shadow training");
  EXPECT_THAT(finding.message, HasSubstr("it is in all_reduce 9 (sequence 8 of communicator 0) f32 "
                                         "x 64 sum, join: shadow bucket 0"));
  EXPECT_THAT(finding.remedy, HasSubstr("model.module(x)"));
  EXPECT_EQ(finding.evidence.at(0).cause, Cause::kCountMismatch);
}

TEST(EvaluationInJoin, WhatItPostedMayBeginWhenItHasGoneOn) {
  History posts = TrainsInJoin(0, 2, 9);
  ForwardInJoin(posts, journal::Phase::kEvaluate).As(journal::Purpose::kJoinAlive);
  posts.Queues(kJoinFlag).In(journal::Phase::kJoinExit).Starts(kJoinFlag).Silent(6);
  const Finding finding = JudgeJoin({posts, WaitsInJoin(1, 2, 1)}).findings.at(0);
  EXPECT_EQ(finding.cause, Cause::kOneSidedEvaluation);
  EXPECT_THAT(finding.culprits, ElementsAre(0));
}

TEST(EvaluationInJoin, TheOthersTrain) {
  const Finding evaluates =
      JudgeJoin({EvaluatesInJoin(0, 1, journal::Phase::kEvaluate), WaitsInJoin(1, 2, 9)})
          .findings.at(0);
  EXPECT_EQ(evaluates.headline.text(),
            "rank 0 evaluates through DistributedDataParallel in all_reduce 9 (join: alive); rank "
            "1 does not");
  // After one input it is training that meets what comes too early.
  const Finding trains =
      JudgeJoin({EvaluatesInJoin(0, 1, journal::Phase::kForward), WaitsInJoin(1, 2, 9)})
          .findings.at(0);
  EXPECT_EQ(trains.headline.text(),
            "rank 0 has evaluated through DistributedDataParallel; rank 1 has not");
  EXPECT_EQ(trains.cause, Cause::kOneSidedEvaluation);
}

TEST(EvaluationInJoin, WhereAllEvaluateItIsAnotherMistake) {
  // Rank 1 calls something of its own while it evaluates.
  History own = TrainsInJoin(1, 2, 9);
  ForwardInJoin(own, journal::Phase::kEvaluate).As(journal::Purpose::kStep).Enters(AllReduce(5));
  EXPECT_EQ(JudgeJoin({EvaluatesInJoin(0, 1, journal::Phase::kEvaluate), own.Silent(6)})
                .findings.at(0)
                .cause,
            Cause::kCountMismatch);
  // Rank 0 is one call behind in its last pass: both evaluate as often.
  History behind = TrainsInJoin(0, 2, 9), ahead = TrainsInJoin(1, 2, 9);
  ForwardInJoin(behind, journal::Phase::kEvaluate).Enters(kJoinFlag).Silent(6);
  ForwardInJoin(ahead, journal::Phase::kEvaluate).Iteration(2).In(journal::Phase::kForward);
  ahead.As(journal::Purpose::kJoinAlive).Enters(kJoinFlag).Silent(6);
  EXPECT_EQ(JudgeJoin({behind, ahead}).findings.at(0).cause, Cause::kCollectiveMismatch);
  // Both have evaluated, and rank 1's next pass lacks its flags.
  History trains = TrainsInJoin(1, 2, 9);
  ForwardInJoin(trains, journal::Phase::kEvaluate).Iteration(2).In(journal::Phase::kBackward);
  trains.As(journal::Purpose::kBucket).Enters(kGradients);
  EXPECT_EQ(JudgeJoin({EvaluatesInJoin(0, 1, journal::Phase::kForward), trains.Silent(6)})
                .findings.at(0)
                .cause,
            Cause::kCountMismatch);
}

TEST(EvaluationInJoin, NobodyEvaluatesInABroadcastThatEndsBehindItsBucket) {
  // Calls are posted: the buffers of iteration 2, which rank 1 leaves out, begin that late.
  History posts = TrainsInJoin(0, 2, 9), skips = TrainsInJoin(1, 2, 9);
  posts.Iteration(2).In(journal::Phase::kForward).As(journal::Purpose::kBufferBroadcast);
  posts.Queues({.collective = collective::Collective::kBroadcast, .count = 8});
  posts.In(journal::Phase::kBackward).As(journal::Purpose::kBucket).Queues(kGradients);
  RankEvidence evidence = posts.Silent(6);
  auto& events = evidence.journal.events;
  journal::JournalEvent starts = events[events.size() - 3];
  starts.kind = journal::EventKind::kStart;
  starts.index = events.back().index + 1;
  events.push_back(starts);
  skips.Iteration(2).In(journal::Phase::kBackward).As(journal::Purpose::kBucket);
  EXPECT_EQ(JudgeJoin({evidence, skips.Enters(kGradients).Silent(6)}).findings.at(0).cause,
            Cause::kCollectiveMismatch);
}

TEST(EvaluationInJoin, AShadowIsNoRankWithoutInputs) {
  // Rank 0 has joined, rank 1 trains on and sends more than it shadows.
  History shadow = TrainsInJoin(0, 2, 1), trains = TrainsInJoin(1, 2, 9);
  ForwardInJoin(shadow.Iteration(-1), journal::Phase::kJoinExit);
  shadow.As(journal::Purpose::kJoinShadowBucket).Enters(AllReduce(63)).Silent(6);
  ForwardInJoin(trains.Iteration(2), journal::Phase::kForward).In(journal::Phase::kBackward);
  trains.As(journal::Purpose::kBucket).Enters(kGradients).Silent(6);
  EXPECT_EQ(JudgeJoin({shadow, trains}).findings.at(0).cause, Cause::kCountMismatch);
}

TEST(EvaluationInJoin, WhatTrainingPostedMayBeginWhileNobodyEvaluates) {
  // Nobody waits for the flags of an iteration under no_sync(): rank 0 is past it.
  History posted = TrainsInJoin(0, 2, 9);
  posted.Iteration(2)
      .In(journal::Phase::kForward)
      .As(journal::Purpose::kJoinAlive)
      .Queues(kJoinFlag);
  posted.In(journal::Phase::kEvaluate).Starts(kJoinFlag).Silent(6);
  History step = TrainsInJoin(1, 2, 9);
  step.Iteration(2).As(journal::Purpose::kStep).Enters(AllReduce(5)).Silent(6);
  EXPECT_EQ(JudgeJoin({posted, step}).findings.at(0).cause, Cause::kCountMismatch);
}

}  // namespace
}  // namespace lockstep::verdict::finders
