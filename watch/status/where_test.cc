// Where a rank is, by its newest events.
#include "watch/status/where.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::watch::status {
namespace {

using events::Call;
using events::Phase;
using testing::ElementsAre;

Event At(Phase phase, Call call, std::uint64_t ticks, std::uint16_t thread = 1) {
  Event event;
  event.phase = phase;
  event.call = call;
  event.ticks = ticks;
  event.thread = thread;
  event.comm = events::kWorldComm;
  event.peer = events::kNoRoot;
  return event;
}

Event Receive(Call call, std::uint64_t ticks, int peer, int tag, std::uint32_t request = 0) {
  Event event = At(Phase::kEnter, call, ticks);
  event.peer = peer;
  event.tag = tag;
  event.request = request;
  return event;
}

Event Part(Call call, std::uint64_t ticks, std::uint32_t request) {
  Event event = At(Phase::kPart, call, ticks);
  event.request = request;
  return event;
}

std::vector<std::string> Texts(const std::vector<Event>& newest) {
  std::vector<std::string> texts;
  for (const ThreadNow& thread : WhereNow(newest)) {
    texts.push_back(thread.inside ? Describe(thread) : "outside");
  }
  return texts;
}

TEST(WhereNow, InsideUntilItLeaves) {
  std::vector<Event> newest = {At(Phase::kLeave, Call::kInit, 1), Receive(Call::kRecv, 2, 1, 7)};
  EXPECT_THAT(Texts(newest), ElementsAre("MPI_Recv from 1, tag 7"));
  EXPECT_EQ(WhereNow(newest)[0].since, 2u);
  newest.push_back(At(Phase::kDone, Call::kRecv, 3));  // it has its message and is about to leave
  EXPECT_THAT(Texts(newest), ElementsAre("MPI_Recv from 1, tag 7"));
  newest.push_back(At(Phase::kLeave, Call::kRecv, 4));
  EXPECT_THAT(Texts(newest), ElementsAre("outside"));
  EXPECT_EQ(WhereNow(newest)[0].since, 4u);
  newest.push_back(At(Phase::kNothing, Call::kNone, 0));  // an event that is being written
  EXPECT_THAT(Texts(newest), ElementsAre("outside"));
}

TEST(WhereNow, ASendAndAReceiveMayBeOneRequest) {
  Event send = Part(Call::kWait, 3, 8);
  send.part = 1;
  EXPECT_THAT(Texts({Receive(Call::kIsendrecv, 1, 1, 7, 9), At(Phase::kLeave, Call::kIsendrecv, 2),
                     Part(Call::kWait, 3, 9), send, At(Phase::kEnter, Call::kWait, 3)}),
              ElementsAre("MPI_Wait: MPI_Isendrecv from 1, tag 7"));
}

TEST(WhereNow, AnEntryMaySayThatTheCallWasLeft) {
  std::vector<Event> newest = {Receive(Call::kIrecv, 1, 1, 7, 41)};
  newest[0].phase = Phase::kEnterLeft;
  EXPECT_THAT(Texts(newest), ElementsAre("outside"));
  newest.push_back(Part(Call::kWait, 2, 41));
  newest.push_back(At(Phase::kEnter, Call::kWait, 3));
  EXPECT_THAT(Texts(newest), ElementsAre("MPI_Wait: MPI_Irecv from 1, tag 7"));
  newest.push_back(At(Phase::kDoneLeft, Call::kWait, 4));
  EXPECT_THAT(Texts(newest), ElementsAre("outside"));
}

TEST(WhereNow, CallsThatAreCounted) {
  std::vector<Event> newest = {At(Phase::kEnterLeft, Call::kBarrier, 1),
                               At(Phase::kEnterLeft, Call::kAllreduce, 2)};
  Event& again = newest.emplace_back(At(Phase::kAgain, Call::kNone, 30));
  again.peer = 2;
  for (const auto& [count, text] :
       {std::pair(5, "MPI_Barrier"), {6, "outside"}, {7, "MPI_Allreduce"}, {8, "outside"}}) {
    again.count = count;
    EXPECT_THAT(Texts(newest), ElementsAre(text));
    EXPECT_EQ(WhereNow(newest)[0].since, 30u);
  }
  newest.erase(newest.begin());  // they are not all there
  EXPECT_THAT(Texts(newest), ElementsAre("outside"));
}

TEST(WhereNow, EachThread) {
  EXPECT_THAT(Texts({At(Phase::kEnter, Call::kBarrier, 1, 2),
                     Receive(Call::kRecv, 2, events::kAnySource, events::kAnyTag)}),
              ElementsAre("MPI_Recv from any, any tag", "MPI_Barrier"));
}

TEST(WhereNow, AWaitSaysWhatPostedItsRequests) {
  EXPECT_THAT(Texts({Receive(Call::kIrecv, 1, 1, 7, 41), Receive(Call::kIsend, 2, 0, 3, 42),
                     Part(Call::kWait, 3, 41), At(Phase::kEnter, Call::kWait, 4)}),
              ElementsAre("MPI_Wait: MPI_Irecv from 1, tag 7"));
  EXPECT_THAT(Texts({Receive(Call::kIrecv, 1, 1, 7, 41), Receive(Call::kIsend, 2, 0, 3, 42),
                     Part(Call::kWaitall, 3, 41), Part(Call::kWaitall, 4, 42),
                     At(Phase::kEnter, Call::kWaitall, 5)}),
              ElementsAre("MPI_Waitall of 2: MPI_Isend to 0, tag 3, ..."));
  // What was posted long ago is not among the newest events.
  EXPECT_THAT(Texts({Part(Call::kWait, 3, 41), At(Phase::kEnter, Call::kWait, 4)}),
              ElementsAre("MPI_Wait"));
}

TEST(WhereNow, NothingIsKnownOfAThreadWithoutAnEntry) {
  EXPECT_THAT(Texts({At(Phase::kDone, Call::kRecv, 3)}), ElementsAre());
  EXPECT_THAT(Texts({}), ElementsAre());
}

TEST(WhereNow, NamesOfCommunicators) {
  Event call = At(Phase::kEnter, Call::kBarrier, 1);
  EXPECT_EQ(NameOfComm(call), "world");
  call.comm = 0x1234'5678'9abc'def0;
  EXPECT_EQ(NameOfComm(call), "cdef0");
  call.comm = events::kNullComm;
  EXPECT_EQ(NameOfComm(call), "");
  call.call = Call::kGroupBarrier;
  call.comm = events::kWorldGroups + 2;
  call.count2 = 19;
  EXPECT_EQ(NameOfComm(call), "group 2");
  EXPECT_THAT(Texts({call}), ElementsAre("barrier 19"));
}

}  // namespace
}  // namespace lockstep::watch::status
