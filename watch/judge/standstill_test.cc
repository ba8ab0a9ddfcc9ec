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

}  // namespace
}  // namespace lockstep::watch::judge
