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

// Rank 0 left the broadcast, and waits where nobody comes: rank 1 waits for its all-reduce.
TEST(Collectives, WhoNobodyAnswersBehindCallsThatDifferIsStuck) {
  for (const bool ahead : {false, true}) {
    LiteralHistory history = Begun(3);
    const auto first = [&] {
      history.Call_(0, Collective(Call::kBcast, 3, 0));
      history.Open(0, Collective(Call::kBarrier, 4));
    };
    if (ahead) first();
    history.Open(1, Collective(Call::kAllreduce, 5));
    if (!ahead) first();
    EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 2 may call what either waits for
    history.Open(2, Collective(Call::kBarrier, 6));
    EXPECT_THAT(history.Stuck(), ElementsAre(0, 1, 2));
    EXPECT_TRUE(history.judge().Standstill().apart);
    EXPECT_THAT(history.Causes(), ElementsAre("call_mismatch"));
  }
}

// A library may pair calls of one kind, whatever came between them.
TEST(Collectives, CallsInAnotherOrderMayAllBeAnswered) {
  LiteralHistory history = Begun(2);
  history.Call_(0, Collective(Call::kBcast, 3, 0));
  history.Open(0, Collective(Call::kBarrier, 4));
  history.Open(1, Collective(Call::kBarrier, 5));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Left(0, Call::kBarrier);
  history.Left(1, Call::kBarrier);
  history.Call_(1, Collective(Call::kBcast, 6, 0));
  history.Open(0, Collective(Call::kBarrier, 7));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Open(1, Collective(Call::kAllreduce, 8));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Collectives, PostedOnesHaveTheirTurnsToo) {
  LiteralHistory history = Begun(2);
  history.Posts(0, Collective(Call::kIbarrier, 1), 1);
  history.Posts(0, Collective(Call::kIbarrier, 2), 2);
  history.OpenOn(0, Call::kWait, 3, {1});
  history.Posts(1, Collective(Call::kIbcast, 4, 1), 1);
  history.Posts(1, Collective(Call::kIbarrier, 5), 2);
  history.OpenOn(1, Call::kWait, 6, {2});
  EXPECT_THAT(history.Stuck(), IsEmpty());  // the first barrier of each is answered
  history.Waits(0, 3, 1);
  history.OpenOn(0, Call::kWait, 7, {2});
  history.Waits(1, 6, 2);
  history.Open(1, Collective(Call::kAllreduce, 8));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Collectives, WhatIsUnderWayBesideThemFreesNobody) {
  LiteralHistory history = Begun(2);
  for (const int rank : {0, 1}) {
    history.Posts(rank, Collective(Call::kIbarrier, 1), 1);
    history.Posts(rank, Collective(rank == 0 ? Call::kIbcast : Call::kIallreduce, 2, 1), 2);
    history.OpenOn(rank, Call::kWaitall, 3, {1, 2});
  }
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Collectives, RanksThatDifferInTheRootWaitForEachOther) {
  const auto stuck = [](Call call, std::initializer_list<int> roots, bool goes_on = false) {
    LiteralHistory history = Begun(static_cast<int>(roots.size()));
    int rank = 0;
    for (const int root : roots) history.Open(rank++, Collective(call, 3, root));
    if (goes_on) history.Left(0, call);
    EXPECT_THAT(history.Causes(), ElementsAre("root_mismatch"));
    return history.Stuck();
  };
  EXPECT_THAT(stuck(Call::kBcast, {1, 0}), ElementsAre(0, 1));
  EXPECT_THAT(stuck(Call::kScatter, {1, 0}), ElementsAre(0, 1));
  EXPECT_THAT(stuck(Call::kReduce, {0, 1}), ElementsAre(0, 1));
  EXPECT_THAT(stuck(Call::kReduce, {0, 1}, true), IsEmpty());
  EXPECT_THAT(stuck(Call::kReduce, {0, 0, 1}), ElementsAre(0, 1, 2));
  EXPECT_THAT(stuck(Call::kBcast, {0, 0, 1}), IsEmpty());  // what rank 1 gets may be on its way
}

// Nothing more comes from ranks that have left it.
TEST(Collectives, WhoIsAloneInACallWithOtherDataIsStuck) {
  LiteralHistory history = Begun(2);
  Event large = Collective(Call::kGather, 3, 0);
  large.count = 1000;
  history.Open(0, large);
  history.Open(1, Collective(Call::kGather, 3, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Left(1, Call::kGather);
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Open(1, Collective(Call::kBarrier, 4));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
  EXPECT_TRUE(history.judge().Standstill().apart);
  EXPECT_THAT(history.Causes(), ElementsAre("datatype_mismatch"));
}

// Rank 1 has its data, and may be told so a little later.
TEST(Collectives, BehindCallsThatDifferNobodyIsStuckAtOnce) {
  LiteralHistory history(3);
  Event broadcast = LiteralHistory::Asks(Call::kBcast, 2);
  broadcast.peer = 2;
  for (const int rank : {1, 2}) history.Posts(rank, LiteralHistory::Asks(Call::kIbarrier, 1), 1);
  history.Open(1, broadcast);
  history.Open(0, LiteralHistory::Asks(Call::kBarrier, 1));
  history.Call_(2, broadcast);
  history.Open(2, LiteralHistory::Receives(Call::kRecv, 3, 1));
  EXPECT_TRUE(history.judge().Standstill().apart);
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1, 2));
}

// Rank 1 needs nobody to leave its own broadcast; and somebody, where rank 0 is the root of it.
TEST(Collectives, BehindCallsThatDifferTheRootOfABroadcastMayGoOn) {
  for (const int root : {0, 1}) {
    LiteralHistory history = Begun(2);
    history.Open(0, LiteralHistory::Asks(Call::kBarrier, 1));
    history.Posts(1, LiteralHistory::Asks(Call::kIbarrier, 1), 1);
    history.Open(1, Collective(Call::kBcast, 2, root));
    EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
    EXPECT_EQ(history.judge().Standstill().soft, root == 1);
  }
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

Event OfCallers(int line, std::uint64_t comm = kOtherComm) {
  Event event = Literal::Asks(Call::kComm_create_group, line);
  event.comm = comm;
  return event;
}

// Rank 2 was named by the others alone.
TEST(Collectives, WhoNeverComesToAGroupsCallIsNamedByThoseWhoDo) {
  for (const bool ends_first : {false, true}) {
    LiteralHistory history = Begun(3);
    if (ends_first) history.EnterFinalize(2);
    for (const int rank : {0, 1}) {
      history.Gathers(rank, kOtherComm, 3);
      history.Open(rank, OfCallers(3));
    }
    EXPECT_EQ(history.Stuck().size(), ends_first ? 2u : 0u);
    if (!ends_first) history.EnterFinalize(2);
    EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
    EXPECT_THAT(history.Findings(),
                ElementsAre("missing_call: rank 2 ends without MPI_Comm_create_group, which rank 0 "
                            "called at line 3"));
  }
}

TEST(Collectives, AGroupsCallMayBeMadeAgain) {
  LiteralHistory history = Begun(2);
  for (int round = 0; round < 3; ++round) {
    for (const int rank : {0, 1}) {
      history.Gathers(rank, kOtherComm, 2);
      history.Call_(rank, OfCallers(3));
    }
  }
  history.Gathers(0, kOtherComm, 2);
  history.Open(0, OfCallers(3));
  history.Open(1, Literal::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Findings(),
              ElementsAre("deadlock: rank 0 waits in MPI_Comm_create_group at line 3; rank 1 is in "
                          "MPI_Recv from rank 0, tag 0, at line 4"));
}

// Of two sides of two ranks each; `sides` are their communicators.
class Sides {
 public:
  Sides() {
    for (int rank = 0; rank < 4; ++rank) history_.Communicator(rank, Side(rank), rank % 2, 2);
  }
  // Ranks 0 and 2 lead.
  void Create(int rank, int line) {
    Event event = Literal::Asks(Call::kIntercomm_create, line);
    if (rank % 2 == 0) {
      Event members = Literal::Asks(Call::kIntercomm_create, 0);
      history_.Communicator(rank, kLeaders, rank / 2, 2);
      members.phase = events::Phase::kMembers;
      members.comm = kLeaders;
      members.count = 1;
      for (const int leader : {0, 2}) {
        members.peer = leader / 2;
        members.request = static_cast<std::uint32_t>(leader);
        history_.Open(rank, members);
      }
      Event part = event;
      part.phase = events::Phase::kPart;
      part.comm = kLeaders;
      history_.Open(rank, part);
    }
    event.comm = Side(rank);
    event.count2 = 0;
    history_.Open(rank, event);
  }
  LiteralHistory& history() { return history_; }

 private:
  static constexpr std::uint64_t kLeaders = 4713;
  static std::uint64_t Side(int rank) { return kOtherComm + static_cast<std::uint64_t>(rank / 2); }
  LiteralHistory history_ = LiteralHistory(4);
};

TEST(Collectives, BothSidesOfAnIntercommunicatorMustCome) {
  Sides sides;
  for (const int rank : {0, 1, 3}) sides.Create(rank, 3);
  EXPECT_THAT(sides.history().Stuck(), IsEmpty());
  sides.history().Open(2, Literal::Receives(Call::kRecv, 4, 1));
  EXPECT_THAT(sides.history().Stuck(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sides.history().Findings(),
              ElementsAre("deadlock: rank 0 waits in MPI_Intercomm_create at line 3; rank 2 is in "
                          "MPI_Recv from rank 1, tag 0, at line 4; 4 ranks are stuck"));
}

// Rank 3 waits for a rank of the other side.
TEST(Collectives, ALeaderMayWaitForTheOtherSide) {
  Sides sides;
  for (const int rank : {0, 1, 2}) sides.Create(rank, 3);
  sides.history().Open(3, Literal::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(sides.history().Stuck(), ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(sides.history().judge().Standstill().soft);
  EXPECT_THAT(sides.history().Causes(), ElementsAre("deadlock"));
}

// A leader that goes on to the next one has left the first.
TEST(Collectives, ALeaderThatIsFurtherKeepsNobody) {
  Sides sides;
  for (int rank = 0; rank < 4; ++rank) sides.Create(rank, 3);
  EXPECT_THAT(sides.history().Stuck(), IsEmpty());
  sides.history().Left(0, Call::kIntercomm_create);
  sides.Create(0, 5);
  EXPECT_THAT(sides.history().Stuck(), IsEmpty());
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
