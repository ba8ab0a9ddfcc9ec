// Who can never go on: AND and OR nodes, messages that may still arrive, ranks that run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using History_ = LiteralHistory;

TEST(Standstill, TwoReceivesThatWaitForEachOther) {
  LiteralHistory history(2);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 1 still runs
  history.Open(1, History_::Receives(Call::kRecv, 5, 0));
  EXPECT_FALSE(history.judge().Standstill().soft);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("deadlock: rank 0 waits in MPI_Recv from rank 1, tag 0, at line 3; rank 1 "
                  "is in MPI_Recv from rank 0, tag 0, at line 5"));
}

TEST(Standstill, AMessageThatWasSentMayStillArrive) {
  LiteralHistory history(2);
  history.Call_(0, History_::Sends(Call::kSend, 1, 1));
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  history.Open(1, History_::Receives(Call::kRecv, 5, 0));
  EXPECT_THAT(history.Causes(), IsEmpty());
}

// Between these words a process may have no processor for long.
TEST(Standstill, WhoGotItsMessageGoesOnAlthoughTheCallHasNotLeftYet) {
  LiteralHistory self(1);
  self.Call_(0, History_::Sends(Call::kSend, 1, 0));
  self.Open(0, History_::Receives(Call::kRecv, 2, 0));
  self.Over(0, Call::kRecv, 0, 0, 0);
  EXPECT_THAT(self.Stuck(), IsEmpty());

  LiteralHistory two(2);
  two.Call_(1, History_::Sends(Call::kSend, 1, 0));
  two.Open(1, History_::Receives(Call::kRecv, 2, 0));
  two.Posts(0, History_::Receives(Call::kIrecv, 3, 1), 1);
  two.OpenOn(0, Call::kWait, 4, {1});
  two.Over(0, Call::kWait, 1, 1, 0);
  EXPECT_THAT(two.Stuck(), IsEmpty());
  two.Left(0, Call::kWait);
  two.Open(0, History_::Receives(Call::kRecv, 5, 1));
  EXPECT_THAT(two.Stuck(), ElementsAre(0, 1));
}

TEST(Standstill, AMessageServesOneReceiveOnly) {
  LiteralHistory history(2);
  history.Call_(0, History_::Sends(Call::kSend, 1, 1));
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  history.Posts(1, History_::Receives(Call::kIrecv, 4, 0), 1);  // takes it
  history.Open(1, History_::Receives(Call::kRecv, 5, 0));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Standstill, StandardSendsMayBeBufferedSynchronousOnesNever) {
  LiteralHistory standard(2);
  standard.Open(0, History_::Sends(Call::kSend, 1, 1));
  standard.Open(1, History_::Sends(Call::kSend, 2, 0));
  EXPECT_THAT(standard.Stuck(), ElementsAre(0, 1));
  EXPECT_TRUE(standard.judge().Standstill().soft);
  LiteralHistory synchronous(2);
  synchronous.Open(0, History_::Sends(Call::kSsend, 1, 1));
  synchronous.Open(1, History_::Sends(Call::kSsend, 2, 0));
  EXPECT_THAT(synchronous.Stuck(), ElementsAre(0, 1));
  EXPECT_FALSE(synchronous.judge().Standstill().soft);
  LiteralHistory buffered(2);
  buffered.Open(0, History_::Sends(Call::kBsend, 1, 1));
  buffered.Open(1, History_::Sends(Call::kBsend, 2, 0));
  EXPECT_THAT(buffered.Stuck(), IsEmpty());
}

TEST(Standstill, ASendWhoseReceiveIsPostedGoesOn) {
  LiteralHistory history(2);
  history.Posts(1, History_::Receives(Call::kIrecv, 4, 0), 1);
  history.Open(1, History_::Receives(Call::kRecv, 5, 0, 8));
  history.Open(0, History_::Sends(Call::kSsend, 1, 1));
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Standstill, AWildcardWaitsForEverybody) {
  LiteralHistory history(3);
  history.Open(0, History_::Receives(Call::kRecv, 3, events::kAnySource));
  history.Open(1, History_::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 2 may send to rank 0
  history.Open(2, History_::Receives(Call::kRecv, 5, 0));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1, 2));
}

TEST(Standstill, WaitallNeedsAllWaitanyOne) {
  for (const Call call : {Call::kWaitall, Call::kWaitany}) {
    LiteralHistory history(3);
    history.Posts(0, History_::Receives(Call::kIrecv, 1, 1), 1);
    history.Posts(0, History_::Receives(Call::kIrecv, 2, 2), 2);
    history.OpenOn(0, call, 3, {1, 2});
    history.Open(1, History_::Receives(Call::kRecv, 4, 0));
    // Rank 2 runs: it may free a Waitany, but not a Waitall.
    const std::vector<int> all = {0, 1};
    EXPECT_EQ(history.Stuck(), call == Call::kWaitall ? all : std::vector<int>());
  }
}

TEST(Standstill, WhoIsInFinalizeSendsNothingMore) {
  LiteralHistory history(2);
  history.EnterFinalize(1);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("deadlock: rank 0 waits in MPI_Recv from rank 1, tag 0, at line 3; rank 1 "
                  "is in MPI_Finalize at line 99"));
}

TEST(Standstill, NamesTheTagThatCameInstead) {
  LiteralHistory history(2);
  history.Call_(0, History_::Sends(Call::kSend, 1, 1, 7));
  history.Open(1, History_::Receives(Call::kRecv, 3, 0, 8));
  history.EnterFinalize(0);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("tag_mismatch: rank 1 waits in MPI_Recv from rank 0, tag 8, at line 3; the "
                  "message came with tag 7"));
}

TEST(Standstill, NamesTheOtherCommunicator) {
  LiteralHistory history(2);
  for (const int rank : {0, 1}) history.Communicator(rank, kOtherComm, rank, 2);
  Event sent = History_::Sends(Call::kSend, 1, 1);
  sent.comm = kOtherComm;
  history.Call_(0, sent);
  history.Open(1, History_::Receives(Call::kRecv, 3, 0));
  history.EnterFinalize(0);
  EXPECT_THAT(history.Causes(), ElementsAre("communicator_mismatch"));
}

// The wildcard may have taken rank 2's message: then rank 1's is left.
TEST(Standstill, WhatAWildcardMayTakeServesALaterReceiveToo) {
  LiteralHistory history(3);
  history.Call_(1, History_::Sends(Call::kSend, 1, 0));
  history.Call_(2, History_::Sends(Call::kSend, 2, 0));
  history.Posts(0, History_::Receives(Call::kIrecv, 3, events::kAnySource), 1);
  history.Open(0, History_::Receives(Call::kRecv, 4, 1));
  history.Open(1, History_::Receives(Call::kRecv, 5, 0));
  history.EnterFinalize(2);
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST(Standstill, AProbeSeesNoMessageThatAReceiveTakes) {
  LiteralHistory history(2);
  history.Call_(1, History_::Sends(Call::kSend, 1, 0));
  history.Posts(0, History_::Receives(Call::kIrecv, 2, 1), 1);
  history.Open(0, History_::Receives(Call::kProbe, 3, 1));
  history.Open(1, History_::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

// Rank 0 may wait for rank 2 only, which computes: nothing shows that its send waits, too.
TEST(Standstill, ASendThatMayBeBufferedIsNoReasonBesideAnother) {
  LiteralHistory history(3);
  history.Posts(0, History_::Sends(Call::kIsend, 1, 1, 7), 1);
  history.Posts(0, History_::Receives(Call::kIrecv, 2, 2), 2);
  history.OpenOn(0, Call::kWaitall, 3, {1, 2});
  history.Open(1, History_::Receives(Call::kRecv, 4, 0, 8));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.EnterFinalize(2);
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

// The message is there, but a large one takes its time.
TEST(Standstill, ASendThatMayBeBufferedIsNoReasonWhileAMessageComes) {
  LiteralHistory history(3);
  history.Posts(0, History_::Sends(Call::kIsend, 1, 1, 7), 1);
  history.Posts(0, History_::Receives(Call::kIrecv, 2, 2), 2);
  history.OpenOn(0, Call::kWaitall, 3, {1, 2});
  history.Open(1, History_::Receives(Call::kRecv, 4, 0, 8));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 2 may send
  history.Call_(2, History_::Sends(Call::kSend, 5, 0));
  history.EnterFinalize(2);
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

// What was probed, and what a call that is not followed began, may take its time as well.
TEST(Standstill, ASendThatMayBeBufferedIsNoReasonBesideARequestOfItsOwn) {
  for (const std::uint32_t other : {std::uint32_t{2}, events::kOtherRequest}) {
    for (const Call call : {Call::kWaitall, Call::kWaitany}) {
      LiteralHistory history(2);
      history.Posts(0, History_::Sends(Call::kIsend, 1, 1, 7), 1);
      history.Posts(0, History_::Asks(Call::kImrecv, 2), 2);
      history.OpenOn(0, call, 3, {1, other});
      history.Open(1, History_::Receives(Call::kRecv, 4, 0, 8));
      EXPECT_THAT(history.Stuck(), IsEmpty());
    }
  }
}

TEST(Standstill, NamesWhoWaitsForTheRankThatIsOver) {
  LiteralHistory history(3);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  history.Open(1, History_::Receives(Call::kRecv, 4, 2));
  history.EnterFinalize(2);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("deadlock: rank 1 waits in MPI_Recv from rank 2, tag 0, at line 4; rank 2 "
                  "is in MPI_Finalize at line 99"));
}

// A launcher that ends one rank because of another may leave a third for a while.
TEST(Standstill, WaitsForRanksOfWhichNobodySawWhoEndedFirst) {
  LiteralHistory history(3);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  history.judge().Ended(1, End::kQuit, 3, false);
  history.judge().Ended(2, End::kDied, 0, false);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("lost_rank: rank 1, rank 2 ended without MPI_Finalize, and nobody saw which "
                  "first; rank 0 waits in MPI_Recv from rank 1, tag 0, at line 3"));
}

TEST(Standstill, NamesAllRanksOfACircleAndNoOther) {
  LiteralHistory history(4);
  history.Open(0, History_::Receives(Call::kRecv, 1, 2));
  for (const int rank : {1, 2, 3}) {
    history.Open(rank, History_::Receives(Call::kRecv, 2, rank % 3 + 1));
  }
  history.judge().Hangs(history.judge().Standstill());
  const std::vector<Finding> told = history.judge().Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0].culprits, ElementsAre(1, 2, 3));
  EXPECT_EQ(told[0].text,
            "rank 1 waits in MPI_Recv from rank 2, tag 0, at line 2; rank 2 is in MPI_Recv from "
            "rank 3, tag 0, at line 2; 4 ranks are stuck");
}

// Rank 1 receives tag 9 later. What keeps it is rank 2.
TEST(Standstill, AnotherTagIsNoReasonWhereAnotherRankIs) {
  LiteralHistory history(3);
  history.Call_(1, History_::Sends(Call::kSend, 1, 0, 9));
  history.Open(0, History_::Receives(Call::kRecv, 3, 1, 5));
  history.Open(1, History_::Receives(Call::kRecv, 4, 2));
  history.EnterFinalize(2);
  EXPECT_THAT(history.Causes(), ElementsAre("deadlock"));
}

TEST(Standstill, AMessageThatAnotherReceiveTakesDidNotComeWithAWrongTag) {
  LiteralHistory history(2);
  history.Call_(1, History_::Sends(Call::kSend, 1, 0, 7));
  history.Posts(0, History_::Receives(Call::kIrecv, 2, 1, 7), 1);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1, 8));
  history.EnterFinalize(1);
  EXPECT_THAT(history.Causes(), ElementsAre("deadlock"));
}

TEST(Standstill, TheSenderOfAWrongTagIsACulpritToo) {
  LiteralHistory history(3);
  history.Call_(2, History_::Sends(Call::kSend, 1, 1, 7));
  history.Open(1, History_::Receives(Call::kRecv, 3, 2, 8));
  history.EnterFinalize(2);
  history.judge().Hangs(history.judge().Standstill());
  EXPECT_THAT(history.judge().Tell().at(0).culprits, ElementsAre(1, 2));
}

TEST(Standstill, TellsOfTheRequestThatIsNotServed) {
  LiteralHistory history(2);
  history.Posts(0, History_::Receives(Call::kIrecv, 1, 1, 1), 1);
  history.Posts(0, History_::Receives(Call::kIrecv, 2, 1, 2), 2);
  history.Call_(1, History_::Sends(Call::kSend, 5, 0, 1));
  history.OpenOn(0, Call::kWaitall, 3, {1, 2});
  history.EnterFinalize(1);
  EXPECT_THAT(history.Findings(),
              ElementsAre("deadlock: rank 0 waits in MPI_Waitall for MPI_Irecv from rank 1, tag 2, "
                          "at line 3; rank 1 is in MPI_Finalize at line 99"));
}

TEST(Standstill, AnotherRanksMessageOnAnotherCommunicatorIsNotMeant) {
  LiteralHistory history(3);
  history.Communicator(1, kOtherComm, 0, 2);  // there it has the number of rank 0
  history.Communicator(2, kOtherComm, 1, 2);
  Event sent = History_::Sends(Call::kSend, 1, 1);
  sent.comm = kOtherComm;
  history.Call_(1, sent);
  history.Open(2, History_::Receives(Call::kRecv, 3, 0));
  history.EnterFinalize(0);
  EXPECT_THAT(history.Causes(), ElementsAre("deadlock"));
}

TEST(Standstill, WhoWaitsForItselfMeansThatNumberOnTheOtherCommunicator) {
  LiteralHistory history(2);
  for (const int rank : {0, 1}) history.Communicator(rank, kOtherComm, 1 - rank, 2);
  history.Call_(0, History_::Sends(Call::kSend, 1, 1));
  Event receive = History_::Receives(Call::kRecv, 3, 0);
  receive.comm = kOtherComm;
  history.Open(1, receive);
  history.EnterFinalize(0);
  EXPECT_THAT(history.Causes(), ElementsAre("communicator_mismatch"));
}

TEST(Standstill, CollectiveAgainstReceive) {
  LiteralHistory history(2);
  history.Open(0, History_::Asks(Call::kBarrier, 3));
  history.Open(1, History_::Receives(Call::kRecv, 4, 0));
  EXPECT_FALSE(history.judge().Standstill().soft) << "no library buffers a barrier";
  EXPECT_THAT(history.Causes(), ElementsAre("deadlock"));
}

TEST(Standstill, NobodyHasABroadcastWithoutItsRoot) {
  LiteralHistory history(2);
  Event broadcast = History_::Asks(Call::kBcast, 3);
  broadcast.peer = 0;
  history.Open(0, History_::Receives(Call::kRecv, 4, 1));
  history.Open(1, broadcast);
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
  EXPECT_FALSE(history.judge().Standstill().soft);
}

TEST(Standstill, ABroadcastNeedsItsRootOnly) {
  LiteralHistory history(3);
  Event broadcast = History_::Asks(Call::kBcast, 3);
  broadcast.peer = 0;
  history.Call_(0, broadcast);
  history.Open(1, broadcast);  // the data may still arrive
  history.Open(2, History_::Receives(Call::kRecv, 4, 1));
  EXPECT_TRUE(history.judge().Standstill().soft);
}

TEST(Standstill, MembersOfACommunicatorThatAreNotKnownMayFreeAnybody) {
  LiteralHistory history(2);
  history.Communicator(0, kOtherComm, 0, 2);
  Event receive = History_::Receives(Call::kRecv, 3, 1);
  receive.comm = kOtherComm;
  history.Open(0, receive);
  history.Open(1, History_::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST(Standstill, AnotherThreadMayFreeItsRank) {
  LiteralHistory history(2);
  history.judge().ThreadsMayCall(1);
  history.Open(0, History_::Receives(Call::kRecv, 3, 1));
  history.Open(1, History_::Receives(Call::kRecv, 5, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST(Standstill, WhoIsOnTheOtherSideOfAnIntercommunicatorHasNoNumberInTheWorld) {
  LiteralHistory history(2);
  Event receive = History_::Receives(Call::kRecv, 3, 0);
  receive.comm = kOtherComm;
  history.Open(0, receive);
  EXPECT_EQ(history.judge().Describe(0),
            "in MPI_Recv from rank 0 of its communicator, tag 0, at line 3");
}

TEST(LostRank, IsSaidToHaveDiedWhereASignalEndedIt) {
  const auto told = [](End how, bool first) {
    LiteralHistory history(2);
    for (const int rank : {0, 1}) history.Call_(rank, History_::Asks(Call::kBarrier, 1));
    history.judge().Ended(1, how, 3, first);
    return history.Findings();
  };
  const std::string exited =
      "lost_rank: rank 1 exited with code 3 without MPI_Finalize; last seen outside MPI";
  EXPECT_THAT(told(End::kExited, false), ElementsAre(exited));
  EXPECT_THAT(told(End::kQuit, true), ElementsAre(exited));
  EXPECT_THAT(told(End::kQuit, false), IsEmpty());  // a launcher may have made it do so
  EXPECT_THAT(told(End::kDied, true),
              ElementsAre("lost_rank: rank 1 died without MPI_Finalize; last seen outside MPI"));
}

TEST(LostRank, IsToldOnceAndIsNoNewsAfterMisuse) {
  LiteralHistory history(3);
  history.Open(1, History_::Receives(Call::kRecv, 3, 0));
  history.judge().Ended(1, End::kDied);
  history.judge().Ended(2, End::kDied);
  EXPECT_THAT(history.Findings(), ElementsAre("lost_rank: rank 1 died without MPI_Finalize; last "
                                              "seen in MPI_Recv from rank 0, tag 0, at line 3"));
  LiteralHistory ended(1);
  ended.Finalizes(0);
  ended.judge().Ended(0, End::kExited);
  EXPECT_THAT(ended.Causes(), IsEmpty());
}

TEST(Standstill, WhoIsAloneReceivesFromNobody) {
  LiteralHistory alone(1);
  alone.Open(0, History_::Receives(Call::kRecv, 3, events::kAnySource));
  EXPECT_THAT(alone.Causes(), ElementsAre("deadlock"));
}

}  // namespace
}  // namespace lockstep::watch::judge
