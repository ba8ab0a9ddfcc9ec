// Collectives by position: kind, root, operator, datatype, count, and who never came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

Event Collective(Call call, int line, int root = events::kNoRoot, int op = events::kNoOp) {
  Event event = Literal::Asks(call, line);
  event.peer = root;
  event.tag = op;
  event.type = kInt;
  event.count = 4;
  return event;
}

// All have called something: what follows, equal and over when it is read, is only counted.
LiteralHistory Begun(int size) {
  LiteralHistory history(size);
  for (int rank = 0; rank < size; ++rank) history.Call_(rank, Collective(Call::kBarrier, 1));
  return history;
}

TEST(Collectives, TheSameEverywhereIsNoNews) {
  LiteralHistory history(3);
  for (int round = 0; round < 100; ++round) {
    for (int rank = 0; rank < 3; ++rank) {
      history.Call_(rank, Collective(Call::kAllreduce, 1, events::kNoRoot, 2));
      history.Call_(rank, Collective(Call::kBcast, 2, round % 3));
    }
  }
  EXPECT_TRUE(history.judge().history().communicators.at(events::kWorldComm).positions.empty());
  for (int rank = 0; rank < 3; ++rank) history.Finalizes(rank);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Collectives, AnotherKind) {
  LiteralHistory history(2);
  history.Open(0, Collective(Call::kBcast, 3, 0));
  history.Open(1, Collective(Call::kReduce, 5, 0, 2));
  EXPECT_THAT(history.Findings(), ElementsAre("call_mismatch: rank 1 calls MPI_Reduce at line 5 "
                                              "where rank 0 calls MPI_Bcast at line 3"));
}

TEST(Collectives, BehindCallsThatDifferNobodyIsStuck) {
  LiteralHistory history(3);
  Event broadcast = LiteralHistory::Asks(Call::kBcast, 2);
  broadcast.peer = 2;
  for (const int rank : {1, 2}) history.Posts(rank, LiteralHistory::Asks(Call::kIbarrier, 1), 1);
  history.Open(1, broadcast);
  history.Open(0, LiteralHistory::Asks(Call::kBarrier, 1));
  history.Call_(2, broadcast);
  history.Open(2, LiteralHistory::Receives(Call::kRecv, 3, 1));
  EXPECT_TRUE(history.Stuck().empty());  // rank 1 has its data
}

TEST(Collectives, ABlockingOneDoesNotMatchAPostedOne) {
  LiteralHistory history(2);
  history.Open(0, Collective(Call::kBarrier, 3));
  history.Posts(1, Collective(Call::kIbarrier, 5), 1);
  EXPECT_THAT(history.Causes(), ElementsAre("call_mismatch"));
}

TEST(Collectives, RootOperatorDatatypeAndCount) {
  const auto causes = [](const Event& first, const Event& second) {
    LiteralHistory history = Begun(2);
    history.Call_(0, first);
    history.Call_(1, second);
    return history.Causes();
  };
  const Event reduce = Collective(Call::kReduce, 3, 0, 2);
  EXPECT_THAT(causes(reduce, reduce), IsEmpty());
  EXPECT_THAT(causes(reduce, Collective(Call::kReduce, 3, 1, 2)), ElementsAre("root_mismatch"));
  EXPECT_THAT(causes(reduce, Collective(Call::kReduce, 3, 0, 1)), ElementsAre("operator_mismatch"));
  EXPECT_THAT(causes(reduce, Collective(Call::kReduce, 3, 0, events::kUserOp)), IsEmpty());
  Event other = reduce;
  other.type = kFloat;
  EXPECT_THAT(causes(reduce, other), ElementsAre("datatype_mismatch"));
  other = reduce;
  other.count = 5;
  EXPECT_THAT(causes(reduce, other), ElementsAre("datatype_mismatch"));
  other.count = events::kUnknownCount;
  EXPECT_THAT(causes(reduce, other), IsEmpty());
  EXPECT_THAT(causes(Collective(Call::kReduce, 3, 7, 2), reduce), ElementsAre("invalid_root"));
  other = reduce;
  other.type2 = kFloat;
  EXPECT_THAT(causes(other, other), ElementsAre("datatype_mismatch"));
}

TEST(Collectives, WhatIsOnlyCountedIsCounted) {
  LiteralHistory history = Begun(2);
  history.Call_(0, Collective(Call::kBcast, 3, 0));
  history.Call_(0, Literal::Sends(Call::kSend, 4, 1));
  history.Got(1, Literal::Receives(Call::kRecv, 5, 0), 0);
  history.Call_(1, Collective(Call::kBcast, 6, 0));
  EXPECT_THAT(history.Causes(), ElementsAre("unsafe_order"));
}

// An exception ended its send.
TEST(Collectives, WhoCallsAgainIsInNoEarlierCall) {
  LiteralHistory history = Begun(2);
  history.Open(0, Literal::Sends(Call::kSsend, 3, 1, 4));
  for (const int rank : {0, 1}) history.Call_(rank, Collective(Call::kBarrier, 4));
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0, 9));
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST(Collectives, EachCommunicatorHasItsOwnOrder) {
  LiteralHistory history(2);
  for (const int rank : {0, 1}) history.Communicator(rank, kOtherComm, rank, 2);
  Event other = Collective(Call::kBarrier, 3);
  other.comm = kOtherComm;
  history.Posts(0, Collective(Call::kIallreduce, 1), 1);
  history.Call_(0, other);
  history.Call_(1, other);
  history.Posts(1, Collective(Call::kIallreduce, 1), 1);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Collectives, WhoEndsWithoutACall) {
  for (const bool ends_first : {false, true}) {
    LiteralHistory history = Begun(2);
    if (ends_first) history.EnterFinalize(1);
    history.Call_(0, Collective(Call::kBcast, 3, 0));
    if (!ends_first) history.EnterFinalize(1);
    EXPECT_THAT(history.Findings(),
                ElementsAre("missing_call: rank 1 ends without MPI_Bcast, which rank 0 called at "
                            "line 3"));
  }
}

TEST(Collectives, TheSameCallOnTwoCommunicators) {
  LiteralHistory history(2);
  for (const int rank : {0, 1}) history.Communicator(rank, kOtherComm, rank, 2);
  Event gather = Collective(Call::kGather, 3, 0);
  history.Call_(1, gather);
  gather.comm = kOtherComm;
  history.Call_(0, gather);
  history.EnterFinalize(1);
  EXPECT_THAT(history.Findings(),
              ElementsAre("communicator_mismatch: rank 1 calls MPI_Gather on another communicator "
                          "than rank 0 at line 3"));
}

TEST(Collectives, WhoIsOnlyLateIsNotAccused) {
  LiteralHistory history(2);
  history.Call_(0, Collective(Call::kBcast, 3, 0));
  history.Finalizes(0);
  EXPECT_THAT(history.Causes(), IsEmpty());
  history.Call_(1, Collective(Call::kBcast, 3, 0));
  history.Finalizes(1);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::watch::judge
