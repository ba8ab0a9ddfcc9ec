// A mismatch that let its ranks pass, and what ended them afterwards: whether the one may follow
// from the other decides what is said first. The other is said, too.
#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

collective::Operation Max(std::int64_t count = 256) {
  collective::Operation operation = AllReduce(count);
  operation.reduction = collective::Reduction::kMax;
  return operation;
}
collective::Operation Gather() {
  return {.collective = collective::Collective::kAllGather, .count = 16};
}
collective::Operation BroadcastFrom(int root) {
  return {.collective = collective::Collective::kBroadcast, .count = 4, .root = root};
}
collective::Operation ReceiveFrom(int peer) {
  return {.collective = collective::Collective::kRecv, .count = 4, .root = peer};
}
History Of(int rank) { return History(rank).In(journal::Phase::kMeasure); }

std::vector<FindingCause> CausesOf(const std::vector<RankEvidence>& evidence,
                                   const std::string& backend) {
  const Judgement judgement =
      Judge(evidence, {.deadline_seconds = kDeadline, .backend = backend, .one_stream = true});
  ExpectReadable(judgement);
  std::vector<FindingCause> causes;
  for (const Finding& finding : judgement.findings) causes.push_back(finding.cause);
  return causes;
}

constexpr const char* kBackends[] = {"gloo", "mpi", "nccl", "sim_gloo", "of unknown rules"};

TEST(Passed, CallsThatStopRanksBehindOneThatSpoilsData) {
  const std::vector<RankEvidence> evidence = {Of(0).Does(AllReduce()).Enters(Barrier()),
                                              Of(1).Does(Max()).Enters(Gather())};
  for (const char* backend : kBackends) {
    EXPECT_THAT(CausesOf(evidence, backend),
                ElementsAre(Cause::kCollectiveMismatch, Cause::kReductionMismatch))
        << backend;
  }
  const Judgement gloo =
      Judge(evidence, {.deadline_seconds = 1e9, .backend = "gloo", .one_stream = true});
  EXPECT_TRUE(gloo.findings.at(0).proved);
  EXPECT_EQ(gloo.findings[0].operation->sequence, 1u);
  EXPECT_THAT(OutcomesOf(gloo), ElementsAre(Outcome::kHung, Outcome::kHung));
  EXPECT_THAT(gloo.findings.at(1).message, HasSubstr("went through"));
}

TEST(Passed, WhatEndedARankComesBeforeWrongData) {
  const History waits = Of(0).Does(AllReduce()).Enters(Barrier()).Silent(6);
  const auto one = [] { return Of(1).Does(Max()); };
  for (const char* backend : kBackends) {
    EXPECT_THAT(CausesOf({waits, one().Reports("raised")}, backend),
                ElementsAre(Cause::kRankFailed, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({waits, one().Exited(3)}, backend),
                ElementsAre(Cause::kRankExited, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({waits, one().Leaves(0)}, backend),
                ElementsAre(Cause::kRankExited, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({waits, one().Signalled(9)}, backend),
                ElementsAre(Cause::kRankKilled, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({waits, one().Stopped(19)}, backend),
                ElementsAre(Cause::kRankStopped, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({waits, one().Silent(6)}, backend),
                ElementsAre(Cause::kRankBusy, Cause::kReductionMismatch));
  }
}

// They are in the calls that differ, and wait there for a third one.
TEST(Passed, WhoDoesNotComeToCallsThatDifferComesFirst) {
  const History sum = Of(0).Does(Barrier()).Enters(AllReduce()).Silent(6);
  const History max = Of(1).Does(Barrier()).Enters(Max()).Silent(6);
  const auto third = [] { return Of(2).Does(Barrier()); };
  for (const char* backend : {"gloo", "mpi", "nccl"}) {
    EXPECT_THAT(CausesOf({sum, max, third().Signalled(9)}, backend),
                ElementsAre(Cause::kRankKilled, Cause::kReductionMismatch));
    EXPECT_THAT(CausesOf({sum, max, third().Silent(6)}, backend),
                ElementsAre(Cause::kRankBusy, Cause::kReductionMismatch));
    // All came: nothing else can hold them.
    EXPECT_THAT(CausesOf({sum, max, third().Enters(AllReduce()).Silent(6)}, backend),
                ElementsAre(Cause::kReductionMismatch));
  }
}

TEST(Passed, AloneItIsWhatWasFound) {
  const std::vector<RankEvidence> over = {Of(0).Does(AllReduce()).Does(Barrier()).Leaves(0),
                                          Of(1).Does(Max()).Does(Barrier()).Leaves(0)};
  for (const char* backend : kBackends) {
    EXPECT_THAT(CausesOf(over, backend), ElementsAre(Cause::kReductionMismatch));
  }
}

// Rank 1 called one operation less, and from there on each of its calls meets the one before: what
// ends them follows from the first of these meetings, as harmless as that one was.
TEST(Passed, ACallTooFewExplainsTheEnd) {
  EXPECT_THAT(CausesOf({Of(0).Does(Max()).Does(AllReduce(), 2).Enters(AllReduce()),
                        Of(1).Does(AllReduce(), 3).Leaves(0)},
                       "gloo"),
              ElementsAre(Cause::kReductionMismatch, Cause::kRankExited));
  EXPECT_THAT(
      CausesOf({Of(0).Does(Max()).Enters(AllReduce()), Of(1).Does(AllReduce()).Enters(Barrier())},
               "gloo"),
      ElementsAre(Cause::kReductionMismatch, Cause::kCollectiveMismatch));
  // Here the one that ended is not the one that called less.
  EXPECT_THAT(CausesOf({Of(0).Does(AllReduce(), 3).Enters(AllReduce()),
                        Of(1).Does(Max()).Does(AllReduce(), 2).Leaves(0)},
                       "gloo"),
              ElementsAre(Cause::kRankExited, Cause::kReductionMismatch));
}

// Both roots send and go on; what they sent is still there when a later call looks for data.
TEST(Passed, DataThatAreLeftExplainWhatCallsDo) {
  const History left = Of(0).Does(BroadcastFrom(0)).Does(AllReduce()).Leaves(0);
  const auto other = [] { return Of(1).Does(BroadcastFrom(1)); };
  EXPECT_THAT(CausesOf({left, other().FailsIn(AllReduce()).Reports("truncated")}, "mpi"),
              ElementsAre(Cause::kRootMismatch, Cause::kRankFailed));
  EXPECT_THAT(CausesOf({left, other().Enters(AllReduce()).Silent(6)}, "nccl"),
              ElementsAre(Cause::kRootMismatch, Cause::kTransportStall));
  // In gloo a call has a slot of its own.
  EXPECT_THAT(CausesOf({left, other().FailsIn(AllReduce()).Reports("truncated")}, "gloo"),
              ElementsAre(Cause::kRankFailed, Cause::kRootMismatch));
  // No data keep a rank from calling, or raise in its program.
  const History waits = Of(0).Does(BroadcastFrom(0)).Enters(AllReduce()).Silent(6);
  EXPECT_THAT(CausesOf({waits, other().Silent(6)}, "mpi"),
              ElementsAre(Cause::kRankBusy, Cause::kRootMismatch));
  EXPECT_THAT(CausesOf({waits, other().Reports("raised")}, "mpi"),
              ElementsAre(Cause::kRankFailed, Cause::kRootMismatch));
}

// A rank that takes a barrier for the answer to its question may do anything with it.
TEST(Passed, AnAnswerToAnotherQuestionExplainsWhatIsRaised) {
  const History joins = History(0)
                            .In(journal::Phase::kJoinExit)
                            .As(journal::Purpose::kJoinAlive)
                            .Does(AllReduce(1))
                            .Reports("no last joiner");
  const History trains = History(1)
                             .In(journal::Phase::kBarrier)
                             .As(journal::Purpose::kBarrier)
                             .Does(Barrier())
                             .Silent(6);
  EXPECT_THAT(CausesOf({joins, trains}, "nccl"),
              ElementsAre(Cause::kCollectiveMismatch, Cause::kRankFailed));
}

// Both wait for each other in a ring, and the calls behind it differ: that is how it came about.
TEST(Passed, CallsThatDifferBehindARing) {
  const auto ring = [](int rank, int first, int then) {
    return Of(rank).On(first).Enters(AllReduce()).On(then).Queues(AllReduce());
  };
  const Setting setting = {.deadline_seconds = kDeadline,
                           .backend = "mpi",
                           .groups = {{.communicator = 1, .name = "pair", .ranks = {0, 1}}}};
  const Judgement judgement = Judge({ring(0, 0, 1).On(0).Queues(Max()).Silent(6),
                                     ring(1, 1, 0).On(0).Queues(AllReduce()).Silent(6)},
                                    setting);
  ASSERT_EQ(judgement.findings.size(), 2u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kReductionMismatch);
  EXPECT_FALSE(judgement.findings[1].proved);
}

// Rank 1 called one broadcast too many and waits in it, rank 2 waits for rank 1; then ranks that
// got through leave, and all that the others see is connections that end.
TEST(Passed, ConnectionsThatEndBehindCallsThatDiffer) {
  const auto left = [](int rank) { return Of(rank).Does(BroadcastFrom(3)).Leaves(0); };
  const History over =
      Of(1).FailsIn(BroadcastFrom(2)).Reports("Connection closed by peer (rank 0)");
  const auto partner = [](const char* error) {
    return Of(2).FailsIn(ReceiveFrom(1)).Reports(error);
  };
  EXPECT_THAT(
      CausesOf({left(0), over, partner("Connection closed by peer (rank 1)"), left(3)}, "sim_gloo"),
      ElementsAre(Cause::kRootMismatch));
  // An error of its own kept it from the call.
  EXPECT_THAT(CausesOf({left(0), over, partner("out of memory"), left(3)}, "sim_gloo"),
              ElementsAre(Cause::kRankFailed, Cause::kRootMismatch));
}

// A signal from outside befalls a rank wherever it is; one of its own may be the library's.
TEST(Passed, ARankThatEndedInCallsThatDiffer) {
  const History waits = Of(0).Enters(AllReduce(8)).Silent(6);
  EXPECT_THAT(CausesOf({waits, Of(1).Enters(AllReduce(9)).Signalled(6)}, "gloo"),
              ElementsAre(Cause::kCountMismatch, Cause::kRankCrashed));
  EXPECT_THAT(CausesOf({waits, Of(1).Enters(AllReduce(9)).Signalled(9)}, "gloo"),
              ElementsAre(Cause::kRankKilled, Cause::kCountMismatch));
}

TEST(PassedMismatch, CallsThatAreNotCountedAlikeHideWhatMeetsBehindThem) {
  // MPI counts each kind by itself: rank 0's broadcast, which rank 1 never makes, shifts the rest.
  const std::vector<RankEvidence> evidence = {
      Of(0).Does(AllReduce()).Does(BroadcastFrom(0)).Does(Barrier()).Enters(AllReduce()),
      Of(1).Does(Max()).Does(Barrier()).Enters(AllReduce())};
  const Judgement judgement =
      Judge(evidence, {.deadline_seconds = kDeadline, .backend = "mpi", .one_stream = true});
  EXPECT_FALSE(NobodyCanGoOn(evidence, judgement));
  EXPECT_THAT(OutcomesOf(judgement), ElementsAre(Outcome::kFinished, Outcome::kFinished));
}

TEST(Passed, AMessageShorterThanItsReceiveExplainsWhatThatHolds) {
  const auto send = [](std::int64_t count) {
    return collective::Operation{
        .collective = collective::Collective::kSend, .count = count, .root = 1};
  };
  const auto receives = [](const char* wrong) {
    return Of(1).Iteration(7).Does(ReceiveFrom(0)).Leaves(0).WrongData(wrong);
  };
  const RankEvidence short_by_one = Of(0).Iteration(7).Does(send(3)).Leaves(0);
  const char* const seen = "recv f32 x 4 peer 0 of iteration 7: 1 of 4 elements are wrong";
  for (const char* backend : {"gloo", "mpi"}) {
    EXPECT_THAT(CausesOf({short_by_one, receives(seen)}, backend),
                ElementsAre(Cause::kCountMismatch, Cause::kDataCorruption))
        << backend;
    // The message had its length, another receive is wrong, or nothing is.
    EXPECT_THAT(CausesOf({Of(0).Iteration(7).Does(send(4)).Leaves(0), receives(seen)}, backend),
                ElementsAre(Cause::kDataCorruption));
    EXPECT_THAT(
        CausesOf({short_by_one, receives("recv f32 x 4 peer 0 of iteration 71: 1")}, backend),
        ElementsAre(Cause::kDataCorruption));
    EXPECT_THAT(CausesOf({short_by_one, receives("")}, backend), ElementsAre());
  }
  const Judgement judgement =
      Judge({short_by_one, receives(seen)}, {.deadline_seconds = kDeadline, .backend = "mpi"});
  EXPECT_TRUE(judgement.findings.at(0).proved);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(0, 1));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("its last elements are not written"));
}

}  // namespace
}  // namespace lockstep::verdict::finders
