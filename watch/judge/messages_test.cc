// Messages and their receives: datatypes, room, what nobody receives, races.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

void FinalizeAll(LiteralHistory& history, int size) {
  for (int rank = 0; rank < size; ++rank) history.EnterFinalize(rank);
}

TEST(Messages, WhatFitsIsNoNewsInEitherOrderOfReading) {
  LiteralHistory forwards(2);
  forwards.Call_(0, Literal::Sends(Call::kSend, 1, 1));
  forwards.Got(1, Literal::Receives(Call::kRecv, 2, 0), 0);
  FinalizeAll(forwards, 2);
  EXPECT_THAT(forwards.Causes(), IsEmpty());
  LiteralHistory backwards(2);
  backwards.Got(1, Literal::Receives(Call::kRecv, 2, 0), 0);
  backwards.Call_(0, Literal::Sends(Call::kSend, 1, 1));
  FinalizeAll(backwards, 2);
  EXPECT_THAT(backwards.Causes(), IsEmpty());
}

TEST(Messages, AnotherDatatype) {
  LiteralHistory history(2);
  Event sent = Literal::Sends(Call::kSend, 1, 1);
  sent.type = kFloat;
  history.Call_(0, sent);
  history.Got(1, Literal::Receives(Call::kRecv, 2, 0), 0);
  EXPECT_THAT(history.Findings(), ElementsAre("datatype_mismatch: rank 0 sends another datatype at "
                                              "line 1 than rank 1 receives at line 2"));
}

TEST(Messages, BytesAndMixedTypesFitAll) {
  for (const std::uint32_t type : {events::kByteType, events::kMixedType}) {
    LiteralHistory history(2);
    Event sent = Literal::Sends(Call::kSend, 1, 1);
    sent.type = type;
    history.Call_(0, sent);
    history.Got(1, Literal::Receives(Call::kRecv, 2, 0), 0);
    EXPECT_THAT(history.Causes(), IsEmpty());
  }
}

TEST(Messages, ShorterFitsLongerDoesNot) {
  for (const int count : {1, 9}) {
    LiteralHistory history(2);
    Event sent = Literal::Sends(Call::kSend, 1, 1);
    sent.count = count;
    Event receive = Literal::Receives(Call::kRecv, 2, 0);
    receive.count = 5;
    history.Call_(0, sent);
    history.Got(1, receive, 0);
    EXPECT_EQ(history.Causes().size(), count > 5 ? 1u : 0u);
  }
}

TEST(Messages, NobodyReceivesIt) {
  LiteralHistory history(2);
  history.Call_(0, Literal::Sends(Call::kSend, 1, 1));
  history.EnterFinalize(0);
  EXPECT_THAT(history.Causes(), IsEmpty());  // rank 1 may still receive it
  history.EnterFinalize(1);
  EXPECT_THAT(history.Findings(), ElementsAre("lost_message: rank 0 sends to rank 1 in MPI_Send at "
                                              "line 1; nobody receives it"));
}

TEST(Messages, TagsAreMatchedOutOfOrder) {
  LiteralHistory history(2);
  history.Call_(0, Literal::Sends(Call::kSend, 1, 1, 1));
  history.Call_(0, Literal::Sends(Call::kSend, 2, 1, 2));
  history.Got(1, Literal::Receives(Call::kRecv, 3, 0, 2), 0, 2);
  history.Got(1, Literal::Receives(Call::kRecv, 4, 0, 1), 0, 1);
  FinalizeAll(history, 2);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Messages, AMessageThatACollectiveHoldsBack) {
  for (const Call call : {Call::kBcast, Call::kIbcast}) {
    for (const bool early : {true, false}) {
      LiteralHistory history(2);
      Event broadcast = Literal::Asks(call, 3);
      broadcast.peer = 0;
      broadcast.request = call == Call::kIbcast ? 1 : 0;
      history.Call_(0, broadcast);
      history.Call_(0, Literal::Sends(Call::kSend, 4, 1));
      if (!early) history.Call_(1, broadcast);
      history.Got(1, Literal::Receives(Call::kRecv, 7, 0), 0);
      if (early) history.Call_(1, broadcast);
      const bool unsafe = early && call == Call::kBcast;
      EXPECT_EQ(history.Findings(),
                unsafe
                    ? std::vector<std::string>{"unsafe_order: rank 0 sends after a collective at "
                                               "line 4; rank 1 waits for it before that "
                                               "collective at line 7"}
                    : std::vector<std::string>{});
    }
  }
}

TEST(Messages, AfterCallsThatDifferNothingIsSaidOfTheirOrder) {
  LiteralHistory history(3);
  Event broadcast = Literal::Asks(Call::kBcast, 2);
  broadcast.peer = 1;
  history.Call_(1, Literal::Asks(Call::kBarrier, 1));
  history.Call_(1, broadcast);
  history.Open(2, broadcast);
  history.Call_(1, Literal::Sends(Call::kSend, 3, 0));
  history.Call_(0, Literal::Asks(Call::kBarrier, 1));
  history.Call_(0, broadcast);
  history.Got(0, Literal::Receives(Call::kRecv, 3, 1), 1);
  EXPECT_THAT(history.Causes(), ElementsAre("call_mismatch"));
}

TEST(Messages, ACancelledSendIsNotLost) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Sends(Call::kIsend, 1, 1), 1);
  history.OpenOn(0, Call::kCancel, 2, {1});
  history.Left(0, Call::kCancel);
  history.Waits(0, 3, 1);
  FinalizeAll(history, 2);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Messages, ARaceIsToldWhereItIsAskedFor) {
  for (const bool asked : {false, true}) {
    LiteralHistory history(3, Options{.races = asked});
    const Event receive = Literal::Receives(Call::kRecv, 5, events::kAnySource);
    for (const int source : {1, 2}) {
      history.Call_(source, Literal::Sends(Call::kSend, 1, 0));
      history.Got(0, receive, source);
    }
    EXPECT_EQ(history.Causes().size(), asked ? 1u : 0u);
  }
}

// Of rank 0 alone was read so far.
TEST(Messages, ARaceNamesRanksThatWereNotReadYet) {
  Judge judge(3, [](int, std::uint64_t) { return "line 1"; }, {.races = true});
  Event world = Literal::Asks(Call::kInit, 0);
  world.phase = events::Phase::kMade;
  world.peer = 0;
  world.count = 3;
  judge.Take(0, world);
  for (const int source : {1, 2}) {
    judge.Take(0, Literal::Receives(Call::kRecv, 5, events::kAnySource));
    Event done = Literal::Asks(Call::kRecv, 0);
    done.phase = events::Phase::kDone;
    done.peer = source;
    done.tag = 0;
    judge.Take(0, done);
  }
  const std::vector<Finding> told = judge.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text.find("messages of ranks 1 and 2 race"), 0u) << told[0].text;
}

// Ranks 1 and 2 send to rank 0, which receives from any source before the collective and after it.
LiteralHistory TwoPlaces(const Event& collective) {
  LiteralHistory history(3, Options{.races = true});
  history.Posts(0, Literal::Receives(Call::kIrecv, 5, events::kAnySource), 1);
  for (const int rank : {0, 1, 2}) history.Call_(rank, collective);
  history.Posts(0, Literal::Receives(Call::kIrecv, 6, events::kAnySource), 2);
  return history;
}

Event OfAll(Call call, int root = events::kNoRoot) {
  Event event = Literal::Asks(call, 4);
  event.peer = root;
  return event;
}

void SendAndReceive(LiteralHistory& history) {
  for (const int rank : {1, 2}) history.Call_(rank, Literal::Sends(Call::kSend, 1, 0));
  for (const int rank : {1, 2}) {
    history.Waits(0, 7, static_cast<std::uint32_t>(rank), rank);
  }
}

TEST(Messages, ReceivesAtTwoPlacesRaceForTwoMessages) {
  for (const Event& between : {OfAll(Call::kBarrier), OfAll(Call::kBcast, 1)}) {
    LiteralHistory history = TwoPlaces(between);
    SendAndReceive(history);
    EXPECT_THAT(history.Findings(), ElementsAre("message_race: messages of ranks 1 and 2 race for "
                                                "the MPI_ANY_SOURCE of rank 0 at line 5"));
  }
}

TEST(Messages, WhoMayKnowWhatWasTakenDoesNotRace) {
  // Rank 2 heard of rank 0 before it sent.
  LiteralHistory heard = TwoPlaces(OfAll(Call::kBarrier));
  heard.Call_(0, Literal::Sends(Call::kSend, 2, 2));
  heard.Got(2, Literal::Receives(Call::kRecv, 3, 0), 0);
  SendAndReceive(heard);
  EXPECT_THAT(heard.Findings(), IsEmpty());
  // Rank 0 was told before all met.
  LiteralHistory told(3, Options{.races = true});
  told.Call_(1, Literal::Sends(Call::kSend, 1, 0));
  told.Got(0, Literal::Receives(Call::kRecv, 2, events::kAnySource), 1);
  for (const int rank : {0, 1, 2}) told.Call_(rank, OfAll(Call::kBarrier));
  told.Call_(2, Literal::Sends(Call::kSend, 5, 0));
  told.Got(0, Literal::Receives(Call::kRecv, 6, events::kAnySource), 2);
  EXPECT_THAT(told.Findings(), IsEmpty());
  // Rank 1 knew before all met that its message was received.
  LiteralHistory knew(3, Options{.races = true});
  knew.Posts(0, Literal::Receives(Call::kIrecv, 5, events::kAnySource), 1);
  knew.Call_(1, Literal::Sends(Call::kSsend, 1, 0));
  for (const int rank : {0, 1, 2}) knew.Call_(rank, OfAll(Call::kBarrier));
  knew.Call_(2, Literal::Sends(Call::kSend, 3, 0));
  knew.Waits(0, 7, 1, 1);
  knew.Got(0, Literal::Receives(Call::kRecv, 6, events::kAnySource), 2);
  EXPECT_THAT(knew.Findings(), IsEmpty());
  // Rank 1 heard of rank 0, and a broadcast of rank 1 may carry that.
  LiteralHistory carried(3, Options{.races = true});
  carried.Call_(0, Literal::Sends(Call::kSend, 2, 1));
  carried.Got(1, Literal::Receives(Call::kRecv, 3, 0), 0);
  carried.Posts(0, Literal::Receives(Call::kIrecv, 5, events::kAnySource), 1);
  for (const int rank : {0, 1, 2}) carried.Call_(rank, OfAll(Call::kBcast, 1));
  carried.Posts(0, Literal::Receives(Call::kIrecv, 6, events::kAnySource), 2);
  SendAndReceive(carried);
  EXPECT_THAT(carried.Findings(), IsEmpty());
}

// Rank 0 posted a receive of any tag first, so that took the first message; the second receive took
// the third.
TEST(Messages, AReceivePostedEarlierTookTheFirstOne) {
  for (const bool receiver_first : {false, true}) {
    LiteralHistory history(2);
    const auto sends = [&] {
      history.Call_(1, Literal::Sends(Call::kSend, 1, 0, 2));
      history.Call_(1, Literal::Sends(Call::kSend, 2, 0, 101));
      history.Call_(1, Literal::Sends(Call::kSend, 3, 0, 2));
    };
    if (!receiver_first) sends();
    history.Posts(0, Literal::Receives(Call::kIrecv, 5, 1, events::kAnyTag), 1);
    history.Posts(0, Literal::Receives(Call::kIrecv, 6, 1, 101), 2);
    history.Got(0, Literal::Receives(Call::kRecv, 7, 1, 2), 1, 2);
    if (receiver_first) sends();
    history.Open(1, Literal::Receives(Call::kRecv, 4, 0));
    history.OpenOn(0, Call::kWaitall, 8, {1, 2});
    EXPECT_THAT(history.Stuck(), IsEmpty());
  }
}

// Until it is known what the first receive took, nobody knows what those after it took.
TEST(Messages, AWildcardThatWaitsLeavesOpenWhatLaterReceivesTook) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Receives(Call::kIrecv, 11, events::kAnySource, 101), 1);
  history.Posts(0, Literal::Receives(Call::kIrecv, 12, 1, events::kAnyTag), 2);
  history.Posts(0, Literal::Receives(Call::kIrecv, 13, 1, 104), 3);
  history.Got(0, Literal::Receives(Call::kRecv, 14, 1, 1), 1, 1);
  history.Waits(0, 15, 3, 1, 104);
  history.Call_(1, Literal::Sends(Call::kSend, 1, 0, 101));
  history.Call_(1, Literal::Sends(Call::kSend, 2, 0, 1));
  history.Waits(0, 16, 1, 1, 101);
  history.Call_(1, Literal::Sends(Call::kSend, 3, 0, 104));
  history.Call_(1, Literal::Sends(Call::kSend, 4, 0, 1));
  history.Waits(0, 17, 2, 1, 1);
  FinalizeAll(history, 2);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

TEST(Messages, AWildcardThatWaitsLeavesOpenWhatItMayHaveTakenAndNoMore) {
  for (const int tag : {101, 5}) {
    LiteralHistory history(3);
    history.Posts(0, Literal::Receives(Call::kIrecv, 11, events::kAnySource, tag), 1);
    history.Call_(1, Literal::Sends(Call::kSend, 1, 0, 101));
    Event too_long = Literal::Sends(Call::kSend, 2, 0, 5);
    too_long.count = 2;
    history.Call_(1, too_long);
    history.Got(0, Literal::Receives(Call::kRecv, 12, 1, 5), 1, 5);
    EXPECT_EQ(history.Causes().size(), tag == 101 ? 1u : 0u);
    history.Call_(2, Literal::Sends(Call::kSend, 3, 0, tag));
    history.Waits(0, 13, 1, 2, tag);  // a message of rank 2
    EXPECT_EQ(history.Causes().size(), tag == 101 ? 0u : 1u);
  }
}

// Rank 0 posts a receive of any source first, and asks for it last. It takes the first message.
TEST(Messages, AWildcardThatNobodyAsksForKeepsLittleOpen) {
  constexpr int kMessages = 1000;
  for (const bool late_error : {false, true}) {
    LiteralHistory history(2);
    Event wildcard = Literal::Receives(Call::kIrecv, 11, events::kAnySource, 5);
    wildcard.type = kFloat;
    history.Posts(0, wildcard, 1);
    Event first = Literal::Sends(Call::kSend, 1, 0, 5);
    first.type = kFloat;
    history.Call_(1, first);
    for (int message = 0; message < kMessages; ++message) {
      Event sent = Literal::Sends(Call::kSend, 2, 0, 5);
      if (late_error && message == kMessages - 1) sent.type = kFloat;
      history.Call_(1, sent);
      history.Got(0, Literal::Receives(Call::kRecv, 12, 1, 5), 1, 5);
    }
    const Channel& channel = history.judge().history().channels.at({events::kWorldComm, 1, 0});
    EXPECT_LT(channel.sent.size() + channel.taken.size(), 200u);
    EXPECT_THAT(history.Causes(), IsEmpty());
    history.Waits(0, 13, 1, 1, 5);
    EXPECT_TRUE(channel.sent.empty() && channel.taken.empty());
    FinalizeAll(history, 2);
    EXPECT_EQ(history.Causes(), late_error ? std::vector<std::string>{"datatype_mismatch"}
                                           : std::vector<std::string>{});
  }
}

TEST(Messages, ARequestThatNobodyAwaitsReceivedItsMessage) {
  LiteralHistory history(2);
  history.Posts(1, Literal::Receives(Call::kIrecv, 2, 0), 1);
  history.Call_(0, Literal::Sends(Call::kSend, 1, 1));
  FinalizeAll(history, 2);
  EXPECT_THAT(history.Causes(), ElementsAre("unfinished_request"));
}

TEST(Messages, WhatIsReceivedFromNobodyIsIgnored) {
  LiteralHistory history(2);
  history.Call_(0, Literal::Sends(Call::kSend, 1, events::kProcNull));
  history.Got(0, Literal::Receives(Call::kRecv, 2, events::kProcNull), events::kProcNull);
  FinalizeAll(history, 2);
  EXPECT_THAT(history.Causes(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::watch::judge
