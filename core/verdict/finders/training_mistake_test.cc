// Mistakes of training programs: each where it shows, the nearest history where it does not, and
// one that leaves it open. The programs are those of PyTorch's users (spec: six cases of uneven
// inputs, evaluation on one rank, unused parameters).
#include <signal.h>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const collective::Operation kBucket = AllReduce(2);
const collective::Operation kFlag = AllReduce(1);
const collective::Operation kBuffers = {.collective = collective::Collective::kBroadcast,
                                        .count = 8};

// Whole iterations of a model with one bucket, from iteration `first` on.
History Trains(History history, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    history.Iteration(i)
        .In(journal::Phase::kForward)
        .In(journal::Phase::kBackward)
        .As(journal::Purpose::kBucket);
    history.Does(kBucket);
  }
  return history;
}
// The same with buffers to broadcast.
History TrainsWithBuffers(int rank, int count) {
  History history(rank);
  for (int i = 0; i < count; ++i) {
    history.Iteration(i)
        .In(journal::Phase::kForward)
        .As(journal::Purpose::kBufferBroadcast)
        .Does(kBuffers);
    history.In(journal::Phase::kBackward).As(journal::Purpose::kBucket).Does(kBucket);
  }
  return history;
}
History InBucket(int rank, int iteration) {
  return Trains(History(rank), 0, iteration)
      .Iteration(iteration)
      .In(journal::Phase::kForward)
      .In(journal::Phase::kBackward)
      .As(journal::Purpose::kBucket)
      .Enters(kBucket);
}
History Done(int rank, int iterations) {
  return Trains(History(rank), 0, iterations).Iteration(-1).In(journal::Phase::kFinalize).Leaves(0);
}

Judgement JudgeOn(const char* backend, const std::vector<RankEvidence>& evidence) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = backend;
  const Judgement judgement = Judge(evidence, setting);
  ExpectReadable(judgement);
  return judgement;
}

TEST(UnevenInputs, ARankFinishedWhileAnotherHasOneMoreInput) {
  const Judgement judgement = JudgeOn("mpi", {Done(0, 5), InBucket(1, 5)});
  ASSERT_EQ(judgement.findings.size(), 1u);
  const Finding& finding = judgement.findings[0];
  EXPECT_EQ(finding.cause, Cause::kUnevenInputs);
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.culprits, ElementsAre(0));
  EXPECT_THAT(finding.message, HasSubstr("rank 0 had inputs for 5 iterations and has finished"));
  EXPECT_THAT(finding.message, HasSubstr("bucket 0 of iteration 5"));
  EXPECT_THAT(finding.remedy, HasSubstr("join()"));
  ASSERT_EQ(finding.evidence.size(), 1u);
  EXPECT_EQ(finding.evidence[0].cause, Cause::kRankExited);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kHung));
}

// On a GPU a call comes back at once: the program of rank 1 is over, and its device is not.
TEST(UnevenInputs, ARankThatLooksFinishedIsSaidToBeInItsBackwardPass) {
  const auto queued = [] {
    return Trains(History(1), 0, 5)
        .Iteration(5)
        .In(journal::Phase::kForward)
        .In(journal::Phase::kBackward)
        .As(journal::Purpose::kBucket)
        .Queues(kBucket);
  };
  const Judgement judgement =
      JudgeOn("nccl", {Done(0, 5), queued().In(journal::Phase::kFinalize).Starts(kBucket)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnevenInputs);
  EXPECT_THAT(judgement.findings[0].message,
              HasSubstr("its backward() returned before that was done, so rank 1 looks finished "
                        "(finalizing)"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kHung));
  const Judgement elsewhere =
      JudgeOn("nccl", {Done(0, 5), queued().In(journal::Phase::kBarrier).Starts(kBucket)});
  EXPECT_THAT(elsewhere.findings.at(0).message, HasSubstr("looks as if it went on (in a barrier"));
  // Where calls block, it is where it seems to be.
  const Judgement blocked = JudgeOn("mpi", {Done(0, 5), queued().Starts(kBucket)});
  EXPECT_THAT(blocked.findings.at(0).message, Not(HasSubstr("returned before")));
}

TEST(UnevenInputs, AlsoWhereTheOtherWasToldThatItsPeerIsGone) {
  const Judgement judgement =
      JudgeOn("gloo", {Done(0, 5), Trains(History(1), 0, 5)
                                       .Iteration(5)
                                       .In(journal::Phase::kBackward)
                                       .FailsIn(kBucket)
                                       .Reports("Connection closed by peer")});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnevenInputs);
  EXPECT_EQ(judgement.findings[0].evidence.at(0).cause, Cause::kRankExited);
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kFailed));
}

TEST(UnevenInputs, BarrierAfterTheLoopMeetsABackwardPass) {
  const auto at = [](const collective::Operation& barrier) {
    return std::vector<RankEvidence>{Trains(History(0), 0, 5)
                                         .Iteration(-1)
                                         .In(journal::Phase::kBarrier)
                                         .As(journal::Purpose::kBarrier)
                                         .Enters(barrier),
                                     InBucket(1, 5)};
  };
  const Judgement gloo = JudgeOn("gloo", at(Barrier()));
  ASSERT_EQ(gloo.findings.size(), 1u);
  EXPECT_EQ(gloo.findings[0].cause, Cause::kUnevenInputs);
  EXPECT_TRUE(gloo.findings[0].proved);
  EXPECT_EQ(gloo.findings[0].evidence.at(0).cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(OutcomesOf(gloo), ElementsAre(Outcome::kHung, Outcome::kHung));
  // The barrier as an all-reduce of one f32: the gradient is silently wrong, and both go on.
  const Judgement nccl = JudgeOn("nccl", at(kFlag));
  EXPECT_EQ(nccl.findings.at(0).cause, Cause::kUnevenInputs);
  EXPECT_EQ(nccl.findings[0].evidence.at(0).cause, Cause::kCountMismatch);
  EXPECT_THAT(nccl.findings[0].evidence[0].message, HasSubstr("what the ranks get is wrong"));
  EXPECT_THAT(OutcomesOf(nccl), ElementsAre(Outcome::kFinished, Outcome::kFinished));
}

TEST(UnevenInputs, ARankThatLingersIsOnlySuspected) {
  const auto at = [](double silent) {
    return std::vector<RankEvidence>{
        Trains(History(0), 0, 5).Iteration(-1).In(journal::Phase::kFinalize).Idle().Silent(silent),
        InBucket(1, 5).Silent(silent)};
  };
  EXPECT_TRUE(JudgeOn("mpi", at(1)).findings.empty());
  const Judgement late = JudgeOn("mpi", at(6));
  EXPECT_EQ(late.findings.at(0).cause, Cause::kUnevenInputs);
  EXPECT_FALSE(late.findings[0].proved);
}

TEST(UnevenInputs, NotWhereAnotherThingHappened) {
  // A rank was killed: it may have had as many inputs as the others.
  EXPECT_EQ(JudgeOn("mpi", {Trains(History(0), 0, 5).Signalled(SIGKILL), InBucket(1, 5)})
                .findings.at(0)
                .cause,
            Cause::kRankKilled);
  // Exit code 0 in the middle of an iteration is no end of the inputs.
  EXPECT_EQ(JudgeOn("mpi", {InBucket(0, 4).Exited(0), InBucket(1, 4)}).findings.at(0).cause,
            Cause::kRankExited);
  // A barrier inside the loop: somebody skipped it.
  EXPECT_EQ(
      JudgeOn("gloo", {Trains(History(0), 0, 5).As(journal::Purpose::kBarrier).Enters(Barrier()),
                       InBucket(1, 5)})
          .findings.at(0)
          .cause,
      Cause::kCollectiveMismatch);
  // A slow rank: it loads, and will come.
  EXPECT_EQ(JudgeOn("mpi", {Trains(History(0), 0, 5).In(journal::Phase::kLoad).Silent(0.1),
                            InBucket(1, 5).Silent(6)})
                .findings.at(0)
                .cause,
            Cause::kRankBusy);
}

TEST(UnevenInputs, UndecidableWhenTheRingLostTheIterations) {
  const Judgement judgement =
      JudgeOn("mpi", {History(0).In(journal::Phase::kFinalize).Idle().Missed(1000).Silent(6),
                      InBucket(1, 5).Silent(6)});
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kUnknown);
}

// Rank 0 has joined and asks who is still alive; rank 1 is in the barrier of its loop (case 4).
std::vector<RankEvidence> JoinMeetsBarrier(const collective::Operation& barrier) {
  return {Trains(History(0), 0, 5)
              .In(journal::Phase::kJoinExit)
              .As(journal::Purpose::kJoinAlive)
              .Enters(kFlag),
          Trains(History(1), 0, 5)
              .In(journal::Phase::kBarrier)
              .As(journal::Purpose::kBarrier)
              .Enters(barrier)};
}

TEST(Join, ABarrierInsideItIsAMismatchWithARemedyOfItsOwn) {
  const Judgement gloo = JudgeOn("gloo", JoinMeetsBarrier(Barrier()));
  ASSERT_EQ(gloo.findings.size(), 1u);
  EXPECT_EQ(gloo.findings[0].cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(gloo.findings[0].culprits, ElementsAre(0, 1));
  EXPECT_THAT(gloo.findings[0].message, HasSubstr("join: alive"));
  EXPECT_THAT(gloo.findings[0].remedy, HasSubstr("no collectives of your own inside join()"));
  EXPECT_THAT(OutcomesOf(gloo), ElementsAre(Outcome::kHung, Outcome::kHung));
}

TEST(Join, UnderTheOneElementBarrierNothingMismatchesButThePurpose) {
  const Judgement nccl = JudgeOn("nccl", JoinMeetsBarrier(kFlag));
  ASSERT_EQ(nccl.findings.size(), 1u);
  EXPECT_EQ(nccl.findings[0].cause, Cause::kCollectiveMismatch);
  EXPECT_THAT(nccl.findings[0].message, HasSubstr("what the ranks get is wrong"));
  EXPECT_THAT(OutcomesOf(nccl), ElementsAre(Outcome::kFinished, Outcome::kFinished));
}

TEST(Join, AShadowBucketMeetsABucket) {
  const std::vector<RankEvidence> healthy = {Trains(History(0), 0, 5)
                                                 .Iteration(-1)
                                                 .In(journal::Phase::kJoinExit)
                                                 .As(journal::Purpose::kJoinShadowBucket)
                                                 .Enters(kBucket),
                                             InBucket(1, 5)};
  const Judgement judgement = JudgeOn("nccl", healthy);
  EXPECT_TRUE(judgement.findings.empty());
  EXPECT_EQ(judgement.verdict, Verdict::kUnknown);
}

// Rank 0 evaluates through the wrapper after two iterations.
History Evaluates(journal::Phase phase) {
  return TrainsWithBuffers(0, 2).In(phase).As(journal::Purpose::kBufferBroadcast).Enters(kBuffers);
}

TEST(OneSidedEvaluation, BuffersMeetABarrier) {
  // Whether the program said that it evaluates, or only broadcasts buffers again.
  for (const journal::Phase phase : {journal::Phase::kEvaluate, journal::Phase::kForward}) {
    const Judgement judgement =
        JudgeOn("gloo", {Evaluates(phase), TrainsWithBuffers(1, 2)
                                               .In(journal::Phase::kBarrier)
                                               .As(journal::Purpose::kBarrier)
                                               .Enters(Barrier())});
    ASSERT_EQ(judgement.findings.size(), 1u);
    const Finding& finding = judgement.findings[0];
    EXPECT_EQ(finding.cause, Cause::kOneSidedEvaluation);
    EXPECT_TRUE(finding.proved);
    EXPECT_THAT(finding.culprits, ElementsAre(0));
    EXPECT_THAT(finding.message, HasSubstr("rank 1 does not: it is in barrier"));
    EXPECT_THAT(finding.remedy, HasSubstr("model.module(x)"));
    EXPECT_EQ(finding.evidence.at(0).cause, Cause::kCollectiveMismatch);
    EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kHung, Outcome::kHung));
  }
}

TEST(OneSidedEvaluation, AtTheEndTheOthersHaveFinished) {
  const Judgement judgement =
      JudgeOn("mpi", {Evaluates(journal::Phase::kEvaluate),
                      TrainsWithBuffers(1, 2).In(journal::Phase::kFinalize).Leaves(0)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kOneSidedEvaluation);
  EXPECT_EQ(judgement.findings[0].evidence.at(0).cause, Cause::kRankExited);
}

TEST(OneSidedEvaluation, ARootThatWentAheadHasEvaluated) {
  // All evaluate. The root is done, rank 1 raised an exception before its part.
  const Judgement judgement = JudgeOn(
      "nccl", {TrainsWithBuffers(0, 2)
                   .In(journal::Phase::kEvaluate)
                   .As(journal::Purpose::kBufferBroadcast)
                   .Does(kBuffers)
                   .In(journal::Phase::kFinalize)
                   .Leaves(0),
               TrainsWithBuffers(1, 2).In(journal::Phase::kEvaluate).Reports("raised").Leaves(1),
               TrainsWithBuffers(2, 2)
                   .In(journal::Phase::kEvaluate)
                   .As(journal::Purpose::kBufferBroadcast)
                   .Enters(kBuffers)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
}

TEST(OneSidedEvaluation, OneThatPairsWithTheNextForwardPassIsFine) {
  // PyTorch compensates: rank 0's next training pass does not broadcast.
  const Judgement judgement = JudgeOn(
      "gloo", {Evaluates(journal::Phase::kEvaluate), TrainsWithBuffers(1, 2)
                                                         .Iteration(2)
                                                         .In(journal::Phase::kForward)
                                                         .As(journal::Purpose::kBufferBroadcast)
                                                         .Enters(kBuffers)});
  EXPECT_TRUE(judgement.findings.empty());
}

TEST(OneSidedEvaluation, TrainingBuffersAgainstABarrierAreAnotherMistake) {
  const Judgement judgement = JudgeOn("gloo", {TrainsWithBuffers(0, 2)
                                                   .Iteration(2)
                                                   .In(journal::Phase::kForward)
                                                   .As(journal::Purpose::kBufferBroadcast)
                                                   .Enters(kBuffers),
                                               TrainsWithBuffers(1, 2)
                                                   .In(journal::Phase::kBarrier)
                                                   .As(journal::Purpose::kBarrier)
                                                   .Enters(Barrier())});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCollectiveMismatch);
  // Nothing said what it is for: undecidable, so the general finding stays.
  const Judgement silent =
      JudgeOn("gloo", {After49(0).Enters(kBuffers), After49(1).Enters(Barrier())});
  EXPECT_EQ(silent.findings.at(0).cause, Cause::kCollectiveMismatch);
}

// Iteration 3 with two buckets, of which this rank launches the first `buckets`.
History Backward(int rank, int buckets) {
  History history = Trains(History(rank), 0, 3);
  history.Iteration(3).In(journal::Phase::kForward).In(journal::Phase::kBackward);
  for (int i = 0; i < buckets; ++i) history.As(journal::Purpose::kBucket, i).Does(kBucket);
  return history;
}
History WaitsInBucket(int rank, int bucket) {
  return Backward(rank, bucket).As(journal::Purpose::kBucket, bucket).Enters(kBucket);
}

TEST(OneSidedUnusedParameters, ABucketThatOneRankNeverLaunches) {
  // Rank 1 went on; PyTorch raises in its next forward pass.
  const Judgement raised = JudgeOn(
      "mpi", {WaitsInBucket(0, 1),
              Backward(1, 1).In(journal::Phase::kForward).Reports("Expected to have finished")});
  EXPECT_EQ(raised.findings.at(0).cause, Cause::kOneSidedUnusedParameters);
  EXPECT_TRUE(raised.findings[0].proved);
  EXPECT_THAT(raised.findings[0].culprits, ElementsAre(1));
  // Proved is that the bucket is missing, not why.
  EXPECT_THAT(raised.findings[0].message, HasSubstr("iteration 3 without bucket 1, most likely"));
  EXPECT_THAT(raised.findings[0].remedy, HasSubstr("find_unused_parameters=True"));
  EXPECT_EQ(raised.findings[0].evidence.at(0).cause, Cause::kRankFailed);
  // The only bucket, and the next collective of rank 1 meets it.
  const Judgement none =
      JudgeOn("gloo", {WaitsInBucket(0, 0), Backward(1, 0)
                                                .Iteration(4)
                                                .In(journal::Phase::kForward)
                                                .As(journal::Purpose::kBufferBroadcast)
                                                .Enters(kBuffers)});
  EXPECT_EQ(none.findings.at(0).cause, Cause::kOneSidedUnusedParameters);
  EXPECT_EQ(none.findings[0].evidence.at(0).cause, Cause::kCollectiveMismatch);
}

TEST(OneSidedUnusedParameters, ARankThatIsStillInItsBackwardPassIsBusy) {
  const Judgement busy = JudgeOn("mpi", {WaitsInBucket(0, 1).Silent(6), Backward(1, 1).Silent(6)});
  EXPECT_EQ(busy.findings.at(0).cause, Cause::kRankBusy);
  // One that has not begun it yet, too.
  const Judgement early =
      JudgeOn("mpi", {WaitsInBucket(0, 0).Silent(6),
                      Trains(History(1), 0, 3).In(journal::Phase::kLoad).Silent(6)});
  EXPECT_EQ(early.findings.at(0).cause, Cause::kRankBusy);
}

TEST(OneSidedUnusedParameters, UndecidableWithoutPhases) {
  const auto plain = [](int rank) {
    return History(rank)
        .In(journal::Phase::kMeasure)
        .Iteration(3)
        .As(journal::Purpose::kBucket, 0)
        .Does(kBucket);
  };
  const Judgement judgement = JudgeOn(
      "mpi",
      {plain(0).As(journal::Purpose::kBucket, 1).Enters(kBucket).Silent(6), plain(1).Silent(6)});
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
}

TEST(WrongData, IsCorruptionUnlessTheRankEndedWorse) {
  const Judgement judgement = JudgeOn(
      "mpi", {Done(0, 5), Done(1, 5).WrongData("element 3 of all_reduce 5: expected 3, got 4")});
  EXPECT_EQ(judgement.verdict, Verdict::kFail);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kDataCorruption);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("element 3"));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kCorrupt));
  EXPECT_EQ(JudgeOn("mpi", {Done(0, 5), Done(1, 5)}).verdict, Verdict::kPass);
}

}  // namespace
}  // namespace lockstep::verdict::finders
