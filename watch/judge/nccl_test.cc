// NCCL's calls: they return before they are done, so only what was called counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kComm = 1ULL << 63 | 5;

// Ranks of one communicator, in programs without MPI.
class Nccl {
 public:
  explicit Nccl(int size)
      : judge_(size, [](int, std::uint64_t site) { return "line " + std::to_string(site); }) {
    for (int rank = 0; rank < size; ++rank) Joins(rank, kComm, rank, size);
  }

  void Joins(int rank, std::uint64_t comm, int member, int size) {
    Event event;
    event.phase = events::Phase::kMade;
    event.call = Call::kNcclInit;
    event.comm = comm;
    event.peer = member;
    event.count = size;
    judge_.Take(rank, event);
  }
  // The `number`-th call of its kind, and (of collectives) of its communicator.
  static Event Asks(Call call, int number, int peer = events::kNoRoot) {
    Event event = LiteralHistory::Asks(call, 10 * number);
    event.comm = kComm;
    event.count2 = number;
    event.peer = peer;
    event.request = static_cast<std::uint32_t>(number);
    event.type = kFloat;
    event.count = 72;
    event.ticks = static_cast<std::uint64_t>(number);
    return event;
  }
  static Event Reduces(int number) { return Asks(Call::kNcclAllReduce, number); }
  void Calls(int rank, Event event, int error = 0) {
    judge_.Take(rank, event);
    event.phase = events::Phase::kLeave;
    event.peer = error;
    judge_.Take(rank, event);
  }
  std::vector<std::string> Findings() {
    std::vector<std::string> told;
    for (const Finding& finding : judge_.Tell()) {
      told.push_back(std::string(NameOf(finding.cause)) + (finding.proved ? ": " : "?: ") +
                     finding.text);
    }
    return told;
  }
  Judge& judge() { return judge_; }

 private:
  Judge judge_;
};

TEST(Nccl, WhoReturnsWaitedForNobody) {
  Nccl nccl(2);
  for (int number = 1; number <= 3; ++number) nccl.Calls(0, Nccl::Reduces(number));
  EXPECT_THAT(nccl.judge().Standstill().waits, IsEmpty());
  for (int number = 1; number <= 3; ++number) nccl.Calls(1, Nccl::Reduces(number));
  for (const int rank : {0, 1}) {
    nccl.Calls(rank, Nccl::Asks(Call::kNcclDestroy, 1));
    nccl.judge().Ended(rank, End::kExited);
  }
  nccl.judge().AllEnded();
  EXPECT_THAT(nccl.Findings(), IsEmpty());
  EXPECT_TRUE(nccl.judge().history().communicators.at(kComm).positions.empty());
}

// Python's line is looked for later than the call was made.
TEST(Nccl, APythonProgramHasGoneOnFromItsCall) {
  Nccl nccl(2);
  Event reduces = Nccl::Reduces(1);
  Event broadcasts = Nccl::Asks(Call::kNcclBroadcast, 1, 0);
  reduces.site = broadcasts.site = 0;
  nccl.Calls(0, reduces);
  nccl.Calls(1, broadcasts);
  EXPECT_THAT(nccl.Findings(),
              ElementsAre("call_mismatch: rank 1 calls ncclBroadcast 1 (now at line 0) where rank "
                          "0 calls ncclAllReduce 1"));
}

// A call that connects first may wait in it; that is no proof, because it may return.
TEST(Nccl, AnOpenCallIsNoWait) {
  Nccl nccl(2);
  nccl.judge().Take(0, Nccl::Reduces(1));
  nccl.judge().Take(1, Nccl::Asks(Call::kNcclSplit, 1));
  EXPECT_THAT(nccl.judge().Standstill().waits, IsEmpty());
}

TEST(Nccl, DifferencesAtOnePlace) {
  Event larger = Nccl::Reduces(1);
  larger.count = 73;
  Event integers = Nccl::Reduces(1);
  integers.type = kInt;
  Event greatest = Nccl::Reduces(1);
  greatest.tag = 2;
  const std::pair<Event, const char*> kCases[] = {
      {Nccl::Asks(Call::kNcclAllGather, 1),
       "call_mismatch: rank 1 calls ncclAllGather 1 at line 10 where rank 0 calls ncclAllReduce 1 "
       "at line 10"},
      {larger,
       "datatype_mismatch: ncclAllReduce of 288 and 292 bytes: rank 0 in ncclAllReduce 1 at line "
       "10, rank 1 in ncclAllReduce 1 at line 10"},
      {integers,
       "datatype_mismatch: ncclAllReduce with different datatypes or counts: rank 0 in "
       "ncclAllReduce 1 at line 10, rank 1 in ncclAllReduce 1 at line 10"},
      {greatest,
       "operator_mismatch: ncclAllReduce with different operators: rank 0 in ncclAllReduce 1 at "
       "line 10, rank 1 in ncclAllReduce 1 at line 10"}};
  for (const auto& [other, told] : kCases) {
    Nccl nccl(2);
    nccl.Calls(0, Nccl::Reduces(1));
    nccl.Calls(1, other);
    EXPECT_THAT(nccl.Findings(), ElementsAre(told));
  }
}

TEST(Nccl, AnotherRoot) {
  Nccl nccl(2);
  nccl.Calls(0, Nccl::Asks(Call::kNcclBroadcast, 1, 0));
  nccl.Calls(1, Nccl::Asks(Call::kNcclBroadcast, 1, 1));
  EXPECT_THAT(nccl.Findings(),
              ElementsAre("root_mismatch: the root of ncclBroadcast is 0 and 1: rank 0 in "
                          "ncclBroadcast 1 at line 10, rank 1 in ncclBroadcast 1 at line 10"));
}

// NCCL asks for splits over another way than collectives: their orders have nothing to do with
// each other.
TEST(Nccl, SplitsHaveAnOrderOfTheirOwn) {
  Nccl nccl(2);
  Event split = Nccl::Asks(Call::kNcclSplit, 1);
  split.part = 1;
  nccl.Calls(0, Nccl::Reduces(1));
  nccl.Calls(0, split);
  nccl.Calls(1, split);
  nccl.Calls(1, Nccl::Reduces(1));
  EXPECT_THAT(nccl.Findings(), IsEmpty());
}

TEST(Nccl, WhoEndsOrGivesUpWithoutACallIsMissed) {
  const std::string missed =
      " without ncclAllReduce; rank 0 waits for it in ncclAllReduce 2 at "
      "line 20";
  for (const bool before : {true, false}) {
    for (const bool destroys : {true, false}) {
      Nccl nccl(2);
      for (const int rank : {0, 1}) nccl.Calls(rank, Nccl::Reduces(1));
      if (before) nccl.Calls(0, Nccl::Reduces(2));
      if (destroys) nccl.Calls(1, Nccl::Asks(Call::kNcclDestroy, 1));
      if (!destroys) nccl.judge().Ended(1, End::kExited);
      if (!before) nccl.Calls(0, Nccl::Reduces(2));
      nccl.judge().Ended(1, End::kExited);
      EXPECT_THAT(
          nccl.Findings(),
          ElementsAre("missing_call: rank 1 " +
                      std::string(destroys ? "gave up its communicator" : "ended") + missed));
    }
  }
}

TEST(Nccl, ALostRankAndWhoWaitsForIt) {
  Nccl nccl(2);
  for (const int rank : {0, 1}) nccl.Calls(rank, Nccl::Reduces(1));
  nccl.Calls(0, Nccl::Reduces(2));
  nccl.judge().Ended(1, End::kDied);
  EXPECT_THAT(nccl.Findings(),
              ElementsAre("lost_rank: rank 1 died after ncclAllReduce 1 at line 10; rank 0 waits "
                          "for it in ncclAllReduce 2 at line 20"));
}

// A member that aborted waits for nothing: so ranks that agree to stop are not to blame.
TEST(Nccl, WhoAbortedMissesNobody) {
  Nccl nccl(2);
  nccl.Calls(0, Nccl::Reduces(1));
  nccl.Calls(0, Nccl::Asks(Call::kNcclAbort, 1));
  nccl.Calls(1, Nccl::Asks(Call::kNcclAbort, 1));
  nccl.judge().Ended(1, End::kExited);
  nccl.judge().Ended(0, End::kExited);
  EXPECT_THAT(nccl.Findings(), IsEmpty());
}

// Who waits for it may be about to abort, too: its process is only slower.
TEST(Nccl, WhoAbortedIsMissedOnceAllAreSilent) {
  for (const bool all_abort : {true, false}) {
    Nccl nccl(2);
    nccl.Calls(0, Nccl::Reduces(1));
    nccl.Calls(1, Nccl::Asks(Call::kNcclAbort, 1));
    nccl.judge().Ended(1, End::kExited);
    EXPECT_THAT(nccl.Findings(), IsEmpty());
    if (all_abort) {
      nccl.Calls(0, Nccl::Asks(Call::kNcclAbort, 1));
      nccl.judge().Ended(0, End::kExited);
      EXPECT_THAT(nccl.Findings(), IsEmpty());
    } else {
      nccl.judge().Silent(60);
      EXPECT_THAT(nccl.Findings(), ElementsAre(HasSubstr("rank 1 has not called ncclAllReduce; "
                                                         "rank 0 waits for it")));
    }
  }
}

TEST(Nccl, AfterAnErrorOrderIsUnknown) {
  Nccl nccl(2);
  nccl.Calls(0, Nccl::Reduces(1), 5);
  nccl.Calls(1, Nccl::Asks(Call::kNcclAllGather, 1));
  EXPECT_THAT(nccl.Findings(), IsEmpty());
}

TEST(Nccl, MessagesMeetInTheirOrder) {
  Nccl nccl(2);
  nccl.Calls(0, Nccl::Asks(Call::kNcclSend, 1, 1));
  nccl.Calls(0, Nccl::Asks(Call::kNcclRecv, 1, 1));
  nccl.Calls(1, Nccl::Asks(Call::kNcclRecv, 1, 0));
  nccl.Calls(1, Nccl::Asks(Call::kNcclSend, 1, 0));
  EXPECT_THAT(nccl.Findings(), IsEmpty());
  Event larger = Nccl::Asks(Call::kNcclRecv, 2, 0);
  larger.count = 80;
  nccl.Calls(0, Nccl::Asks(Call::kNcclSend, 2, 1));
  nccl.Calls(1, larger);
  EXPECT_THAT(nccl.Findings(),
              ElementsAre("datatype_mismatch: a message of 72 and 80 bytes: rank 0 in ncclSend 2 "
                          "at line 20, rank 1 in ncclRecv 2 at line 20"));
}

TEST(Nccl, AMessageThatNobodySends) {
  for (const bool before : {true, false}) {
    Nccl nccl(3);
    if (before) nccl.Calls(0, Nccl::Asks(Call::kNcclRecv, 1, 2));
    nccl.judge().Ended(2, End::kExited);
    if (!before) nccl.Calls(0, Nccl::Asks(Call::kNcclRecv, 1, 2));
    EXPECT_THAT(nccl.Findings(), ElementsAre("missing_call: rank 2 ended without ncclSend; rank 0 "
                                             "waits for it in ncclRecv 1 at line 10"));
  }
}

TEST(Nccl, SilenceIsSuspectedWhereACallIsMissing) {
  Nccl nccl(3);
  for (const int rank : {0, 1, 2}) nccl.Calls(rank, Nccl::Reduces(1));
  nccl.judge().Silent(60);
  EXPECT_THAT(nccl.Findings(), IsEmpty());
  nccl.Calls(0, Nccl::Reduces(2));
  nccl.Calls(2, Nccl::Reduces(2));
  nccl.judge().Silent(60);
  EXPECT_THAT(nccl.Findings(),
              ElementsAre("missing_call?: rank 1 has not called ncclAllReduce; rank 0 waits for it "
                          "in ncclAllReduce 2 at line 20; no rank has called anything for 60 s; "
                          "rank 1 was last seen after ncclAllReduce 1 at line 10"));
}

// Rank 1 has not called what rank 0 waits for, and that is suspected.
class Suspected : public testing::Test {
 protected:
  Suspected() {
    for (const int rank : {0, 1}) nccl_.Calls(rank, Nccl::Reduces(1));
    nccl_.Calls(0, Nccl::Reduces(2));
    nccl_.judge().Silent(60);
    EXPECT_THAT(nccl_.Findings(), ElementsAre(HasSubstr("missing_call?: rank 1 has not called")));
  }
  Nccl nccl_{2};
};

TEST_F(Suspected, ARankThatEndsWithoutItsCallProvesIt) {
  nccl_.judge().Ended(1, End::kExited);
  EXPECT_THAT(nccl_.Findings(),
              ElementsAre(HasSubstr("missing_call: rank 1 ended without ncclAllReduce")));
}

TEST_F(Suspected, ARankThatGivesUpWithoutItsCallProvesIt) {
  nccl_.Calls(1, Nccl::Asks(Call::kNcclDestroy, 1));
  EXPECT_THAT(nccl_.Findings(),
              ElementsAre(HasSubstr("missing_call: rank 1 gave up its communicator without")));
}

// It may be about to abort, and nobody is to blame for what it does after so long.
TEST_F(Suspected, ItsAbortProvesNothingAndWhoWaitedIsNotBlamed) {
  nccl_.Calls(1, Nccl::Asks(Call::kNcclAbort, 1));
  nccl_.judge().Ended(1, End::kExited);
  nccl_.judge().Ended(0, End::kExited, 3);
  nccl_.judge().AllEnded();
  EXPECT_THAT(nccl_.Findings(), IsEmpty());
}

// The others made a communicator without it.
TEST_F(Suspected, WhoWaitedMayGoOn) {
  nccl_.Calls(1, Nccl::Asks(Call::kNcclAbort, 1));
  nccl_.judge().Ended(1, End::kExited);
  nccl_.Calls(0, Nccl::Asks(Call::kNcclAbort, 1));
  nccl_.Calls(0, Nccl::Asks(Call::kNcclInit, 2));
  nccl_.judge().Ended(0, End::kExited, 3);
  EXPECT_THAT(nccl_.Findings(), ElementsAre(HasSubstr("lost_rank: rank 0 exited with code 3")));
}

TEST_F(Suspected, WhoFailsBehindItIsNotBlamed) {
  nccl_.judge().Ended(0, End::kDied);
  nccl_.judge().AllEnded();
  EXPECT_THAT(nccl_.Findings(), IsEmpty());
}

TEST_F(Suspected, ALateCallLetsLaterFaultsBeTold) {
  nccl_.Calls(1, Nccl::Reduces(2));
  nccl_.Calls(0, Nccl::Reduces(3));
  nccl_.judge().Silent(60);
  EXPECT_THAT(nccl_.Findings(), ElementsAre(HasSubstr("waits for it in ncclAllReduce 3")));
  nccl_.Calls(1, Nccl::Asks(Call::kNcclBroadcast, 3, 0));
  EXPECT_THAT(nccl_.Findings(), ElementsAre(HasSubstr("call_mismatch: rank 1 calls")));
  nccl_.judge().Silent(60);
  EXPECT_THAT(nccl_.Findings(), IsEmpty());
}

TEST_F(Suspected, ALateCallLetsALaterDeathBeTold) {
  nccl_.Calls(1, Nccl::Reduces(2));
  nccl_.Calls(0, Nccl::Reduces(3));
  nccl_.judge().Ended(1, End::kDied);
  EXPECT_THAT(nccl_.Findings(), ElementsAre(HasSubstr("lost_rank: rank 1 died")));
}

// Whoever aborts lets others go on, who may be about to abort as well.
TEST(Nccl, WhoAbortsAndEndsIsSuspectedOfNoMore) {
  Nccl nccl(2);
  nccl.Calls(0, Nccl::Reduces(1));
  nccl.Calls(1, Nccl::Asks(Call::kNcclAbort, 1));
  nccl.judge().Ended(1, End::kExited);
  EXPECT_THAT(nccl.Findings(), IsEmpty());
  nccl.judge().Silent(60);
  EXPECT_THAT(nccl.Findings(), ElementsAre(HasSubstr("rank 1 ended after ncclCommAbort 1")));
}

TEST(Nccl, SeveralMembersInOneProcessAreNotCompared) {
  Nccl nccl(1);
  constexpr std::uint64_t kAll = kComm + 1;
  for (const int member : {0, 1}) nccl.Joins(0, kAll, member, 2);
  Event event = Nccl::Reduces(1);
  event.comm = kAll;
  nccl.Calls(0, event);
  nccl.judge().Ended(0, End::kExited);
  EXPECT_THAT(nccl.Findings(), IsEmpty());
  EXPECT_TRUE(nccl.judge().history().smaller_groups);
}

// MPI_Finalize says nothing of NCCL, and the end of the process does.
TEST(Nccl, InAProgramOfMpiTheEndOfTheProcessCounts) {
  LiteralHistory history(2);
  for (const int rank : {0, 1}) {
    history.Makes(rank, events::Object::kCommunicator, 0, Call::kNcclInit, 0, kComm, rank, 2);
  }
  history.Open(0, Nccl::Reduces(1));
  history.Finalizes(1);
  EXPECT_THAT(history.Findings(), IsEmpty());
  history.judge().Ended(1, End::kExited);
  EXPECT_THAT(history.Findings(), ElementsAre("missing_call: rank 1 ended without ncclAllReduce; "
                                              "rank 0 waits for it in ncclAllReduce 1 at line 10"));
}

}  // namespace
}  // namespace lockstep::watch::judge
