// Process groups: worker threads call, a number of the group says the place, nobody finalizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Ranks that call collectives of one group in several threads.
class Groups {
 public:
  explicit Groups(int size) : history_(size) {
    for (int rank = 0; rank < size; ++rank) Joins(rank, events::kWorldGroups, size);
  }

  void Joins(int rank, std::uint64_t group, int size) {
    history_.Makes(rank, events::Object::kCommunicator, 0, Call::kGroupInit, 0, group, rank, size);
  }
  // The `number`-th call of its kind, at a place in the order of the group.
  static Event Asks(Call call, std::uint32_t place, int number, int thread = 1) {
    Event event = LiteralHistory::Asks(call, 0);
    event.comm = events::kWorldGroups;
    event.request = place;
    event.count2 = number;
    if (call == Call::kGroupBroadcast) event.peer = 0;
    event.thread = static_cast<std::uint16_t>(thread);
    return event;
  }
  void Leaves(int rank, const Event& entered, bool failed = false) {
    Event event = entered;
    event.phase = events::Phase::kLeave;
    event.peer = failed ? 1 : 0;
    judge().Take(rank, event);
  }
  void Calls(int rank, const Event& event) {
    Enters(rank, event);
    Leaves(rank, event);
  }
  void Enters(int rank, const Event& event) { judge().Take(rank, event); }
  Judge& judge() { return history_.judge(); }
  LiteralHistory& history() { return history_; }

 private:
  LiteralHistory history_;
};

const Event kReduce1 = Groups::Asks(Call::kGroupAllReduce, 1, 1);
const Event kReduce2 = Groups::Asks(Call::kGroupAllReduce, 2, 2, 2);

TEST(Groups, ThreadsMayEnterInAnyOrder) {
  Groups groups(2);
  const Event broadcast = Groups::Asks(Call::kGroupBroadcast, 3, 1);
  groups.Enters(0, kReduce1);
  groups.Enters(0, kReduce2);
  groups.Leaves(0, kReduce1);
  groups.Enters(0, broadcast);
  groups.Enters(1, kReduce2);
  groups.Enters(1, kReduce1);
  groups.Leaves(1, kReduce2);
  groups.Enters(1, broadcast);
  EXPECT_THAT(groups.history().Stuck(), IsEmpty());
  EXPECT_THAT(groups.history().Findings(), IsEmpty());
  EXPECT_TRUE(groups.judge().history().communicators.at(events::kWorldGroups).positions.empty());
}

TEST(Groups, SeveralCallsOfOneTagAreSeveralPlaces) {
  Groups groups(2);
  Event sizes = Groups::Asks(Call::kGroupAllGather, 1, 1);
  Event values = Groups::Asks(Call::kGroupAllGatherSizes, 1, 1);
  values.part = 1;
  for (const int rank : {0, 1}) {
    groups.Calls(rank, sizes);
    groups.Calls(rank, values);
  }
  EXPECT_THAT(groups.history().Findings(), IsEmpty());
}

TEST(Groups, AnotherKindIsNamedByItsNumberAndByTheLineOfWhoIsInIt) {
  Groups groups(2);
  const Event broadcast = Groups::Asks(Call::kGroupBroadcast, 2, 7);
  groups.Calls(0, kReduce1);
  groups.Enters(1, kReduce1);
  groups.Leaves(1, kReduce1);
  groups.Calls(0, broadcast);  // its root leaves it at once
  groups.Enters(1, kReduce2);
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("call_mismatch: rank 1 calls all_reduce 2 at line 0 where rank 0 calls "
                          "broadcast 7"));
}

TEST(Groups, AnotherSize) {
  Groups groups(2);
  Event small = kReduce1;
  small.type = 7 << 8 | 4;
  small.count = 1;
  Event large = small;
  large.count = 72;
  groups.Enters(0, small);
  groups.Enters(1, large);
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("datatype_mismatch: all_reduce of 4 and 288 bytes: rank 0 in all_reduce "
                          "1 at line 0, rank 1 in all_reduce 1 at line 0"));
}

Event Message(Call call, int peer, int tag) {
  Event event = Groups::Asks(call, 9, 1);
  event.peer = peer;
  event.tag = tag;
  event.flags = call == Call::kGroupRecv ? events::kReceiving : events::kSynchronous;
  return event;
}

// The rank posts the message, and its main thread waits for it.
void WaitsFor(Groups& groups, int rank, const Event& message) {
  groups.Calls(rank, message);
  Event part = Groups::Asks(Call::kGroupWait, 9, 0);
  part.phase = events::Phase::kPart;
  groups.Enters(rank, part);
  Event wait = Groups::Asks(Call::kGroupWait, 0, 0);
  wait.count = events::kMainThread;
  groups.Enters(rank, wait);
}

TEST(Groups, AReceiveAndASendOfAnotherTag) {
  Groups groups(2);
  WaitsFor(groups, 0, Message(Call::kGroupSend, 1, 5));
  WaitsFor(groups, 1, Message(Call::kGroupRecv, 0, 7));
  EXPECT_THAT(groups.history().Stuck(), ElementsAre(0, 1));
  EXPECT_TRUE(groups.judge().history().MainThreadWaits(1));
  groups.judge().Hangs(groups.judge().Standstill());
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("tag_mismatch: rank 1 waits in recv from rank 0, tag 7, at line 0; the "
                          "message came with tag 5"));
}

TEST(Groups, AMessageThatIsUnderWayFreesBothItsRanks) {
  Groups groups(2);
  WaitsFor(groups, 0, Message(Call::kGroupSend, 1, 7));
  WaitsFor(groups, 1, Message(Call::kGroupRecv, 0, 7));
  EXPECT_THAT(groups.history().Stuck(), IsEmpty());
}

// Collectives of a group have numbers of their own, which say nothing of messages.
TEST(Groups, MessagesAfterACollectiveAreRight) {
  Groups groups(2);
  const Event barrier = Groups::Asks(Call::kGroupBarrier, 7, 1);
  for (const int rank : {0, 1}) groups.Enters(rank, barrier);
  for (const int rank : {0, 1}) groups.Leaves(rank, barrier);
  WaitsFor(groups, 1, Message(Call::kGroupRecv, 0, 0));
  groups.Calls(0, Message(Call::kGroupSend, 1, 0));
  groups.history().Over(1, Call::kGroupWait, 9, 0, 0);
  EXPECT_THAT(groups.history().Findings(), IsEmpty());
}

TEST(Groups, AReceiveWaitsForARankThatIsInACollective) {
  Groups groups(2);
  groups.Enters(0, kReduce1);
  WaitsFor(groups, 1, Message(Call::kGroupRecv, 0, 7));
  EXPECT_THAT(groups.history().Stuck(), ElementsAre(0, 1));
  EXPECT_FALSE(groups.judge().history().MainThreadWaits(0));
}

// Rank 0 dies in a collective. Its launcher ends rank 1, which computes and is not to blame.
TEST(Groups, WhoDiedInACollectiveIsToldAtTheEnd) {
  Groups groups(2);
  groups.Enters(0, kReduce1);
  groups.judge().Ended(0, End::kDied);
  groups.judge().Ended(1, End::kDied, 0, false);
  EXPECT_THAT(groups.history().Findings(), IsEmpty());
  groups.judge().AllEnded();
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("lost_rank: rank 0 died in all_reduce 1 at line 0"));
}

// A thread that serves others may receive for ever: the program leaves it behind by _exit(0).
TEST(Groups, WhoQuitsWellInACallIsToldOnlyWhereAnotherFailed) {
  for (const int code : {0, 3}) {
    Groups groups(2);
    WaitsFor(groups, 0, Message(Call::kGroupRecv, 1, 0));
    groups.judge().Ended(0, End::kQuit, code);
    groups.judge().Ended(1, End::kExited);
    groups.judge().AllEnded();
    EXPECT_EQ(groups.history().Causes().size(), code == 0 ? 0u : 1u);
  }
  Groups groups(2);
  for (const int rank : {0, 1}) groups.Enters(rank, kReduce1);
  groups.judge().Ended(0, End::kQuit, 0);
  groups.Leaves(1, kReduce1, true);
  groups.judge().Ended(1, End::kExited, 1);
  groups.judge().AllEnded();
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("lost_rank: rank 0 exited with code 0 in all_reduce 1 at line 0"));
}

TEST(Groups, OfDeathsBetweenTwoLooksNoneIsTold) {
  for (const int second : {0, 1}) {
    Groups groups(2);
    groups.Enters(0, kReduce1);
    groups.judge().Ended(1 - second, End::kDied, 0, false);
    groups.judge().Ended(second, End::kDied, 0, false);
    groups.judge().AllEnded();
    EXPECT_THAT(groups.history().Findings(), IsEmpty());
  }
}

TEST(Groups, RanksThatEndOwnNothing) {
  Groups groups(2);
  for (const int rank : {0, 1}) groups.Calls(rank, kReduce1);
  groups.judge().Ended(1, End::kExited);
  groups.judge().Ended(0, End::kDied);  // os._exit() after all is done looks like this
  groups.judge().AllEnded();
  EXPECT_THAT(groups.history().Findings(), IsEmpty());
}

TEST(Groups, ARankThatEndsWellIsMissedBeforeAndAfter) {
  const char* const told =
      "missing_call: rank 1 ended without all_reduce 2, which rank 0 called at line 0";
  for (const bool before : {true, false}) {
    Groups groups(2);
    for (const int rank : {0, 1}) groups.Calls(rank, kReduce1);
    if (before) groups.Enters(0, kReduce2);
    groups.judge().Ended(1, End::kExited);
    if (!before) {
      EXPECT_THAT(groups.history().Findings(), IsEmpty());
      groups.Enters(0, kReduce2);
    }
    groups.Leaves(0, kReduce2, true);
    groups.judge().Ended(0, End::kExited, 1);
    groups.judge().AllEnded();
    EXPECT_THAT(groups.history().Findings(), ElementsAre(told)) << before;
  }
}

TEST(Groups, WhoFailedInACollectiveIsNotToBlame) {
  for (const End how : {End::kExited, End::kDied}) {
    Groups groups(2);
    for (const int rank : {0, 1}) groups.Calls(rank, kReduce1);
    groups.Enters(0, kReduce2);
    groups.Leaves(0, kReduce2, true);
    groups.judge().Ended(0, End::kExited, 1);  // seen first, though rank 1 ended first
    groups.judge().Ended(1, how, 1);
    groups.judge().AllEnded();
    const std::string end = how == End::kDied ? "died" : "exited with code 1";
    EXPECT_THAT(groups.history().Findings(),
                ElementsAre("lost_rank: rank 1 " + end +
                            " after all_reduce 1; rank 0 waits for it in all_reduce 2"));
  }
}

TEST(Groups, AnExitCodeIsToldAlsoWhereNobodyWaits) {
  Groups groups(2);
  for (const int rank : {0, 1}) groups.Calls(rank, kReduce1);
  groups.judge().Ended(1, End::kExited, 3);
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("lost_rank: rank 1 exited with code 3 after all_reduce 1"));
}

TEST(Groups, WhereAllFailedTheFirstTells) {
  Groups groups(2);
  for (const int rank : {0, 1}) {
    groups.Enters(rank, kReduce1);
    groups.Leaves(rank, kReduce1, true);
    groups.judge().Ended(rank, End::kExited, 1);
  }
  groups.judge().AllEnded();
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("lost_rank: rank 0 exited with code 1 after all_reduce 1 failed"));
}

TEST(Groups, AMismatchExplainsWhatFollows) {
  Groups groups(2);
  groups.Enters(0, kReduce1);
  groups.Enters(1, Groups::Asks(Call::kGroupBarrier, 1, 1));
  groups.judge().Ended(1, End::kExited, 1);
  groups.judge().Ended(0, End::kDied);
  groups.judge().AllEnded();
  EXPECT_THAT(groups.history().Causes(), ElementsAre("call_mismatch"));
}

// Also those who come to the place after it was told, or to another one.
TEST(Groups, AllRanksAreStuckAfterAMismatch) {
  Groups groups(4);
  groups.Enters(0, kReduce1);
  groups.Enters(1, Groups::Asks(Call::kGroupBarrier, 1, 1));
  groups.Enters(2, kReduce1);
  EXPECT_THAT(groups.history().Stuck(), ElementsAre(0, 1, 2));
  const Event broadcast = Groups::Asks(Call::kGroupBroadcast, 1, 1);
  groups.Calls(3, broadcast);  // its root leaves it at once
  groups.Enters(3, kReduce2);
  EXPECT_THAT(groups.history().Stuck(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(groups.history().Causes(), ElementsAre("call_mismatch"));
}

TEST(Groups, WaitsInTwoGroupsAreStuckOnceAllThreadsWait) {
  Groups groups(2);
  constexpr std::uint64_t kOther = events::kWorldGroups + 1;
  for (const int rank : {0, 1}) groups.Joins(rank, kOther, 2);
  Event elsewhere = kReduce1;
  elsewhere.comm = kOther;
  groups.Enters(0, kReduce1);
  groups.Enters(1, elsewhere);
  EXPECT_THAT(groups.history().Stuck(), ElementsAre(0, 1));
  EXPECT_THAT(groups.history().Findings(),
              ElementsAre("communicator_mismatch: rank 0 waits in all_reduce 1 at line 0; rank 1 "
                          "is in all_reduce 1 at line 0"));
}

TEST(Groups, ARankWithACollectiveThatCanEndIsNotStuck) {
  Groups groups(2);
  groups.Enters(0, kReduce1);
  groups.Enters(0, kReduce2);
  groups.Enters(1, kReduce2);
  EXPECT_THAT(groups.history().Stuck(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::watch::judge
