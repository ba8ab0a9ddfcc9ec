// Halves of messages that nobody follows to their end: cancelled, freed, failed, or of ranks that
// are not watched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

void BothFinalize(LiteralHistory& history) {
  for (int rank = 0; rank < 2; ++rank) history.EnterFinalize(rank);
}

void Asked(LiteralHistory& history, int rank, Call call, std::uint32_t request) {
  history.OpenOn(rank, call, 2, {request});
  history.Left(rank, call);
}

void Cancelled(LiteralHistory& history, int rank, std::uint32_t request) {
  history.OpenOn(rank, Call::kWait, 3, {request});
  Event done = Literal::Asks(Call::kWait, 0);
  done.phase = events::Phase::kDone;
  done.request = request;
  done.flags = events::kCancelled;
  history.judge().Take(rank, done);
  history.Left(rank, Call::kWait);
}

// The same tag carries another datatype later.
Event Floats(Event event) {
  event.type = kFloat;
  return event;
}

void PassFloats(LiteralHistory& history) {
  history.Call_(0, Floats(Literal::Sends(Call::kSend, 5, 1)));
  history.Got(1, Floats(Literal::Receives(Call::kRecv, 6, 0)), 0);
}

TEST(GivenUp, ACancelledReceiveTookNothing) {
  for (const int source : {0, int{events::kAnySource}}) {
    for (const bool waits : {true, false}) {
      LiteralHistory history(2);
      history.Posts(1, Literal::Receives(Call::kIrecv, 1, source), 1);
      Asked(history, 1, Call::kCancel, 1);
      waits ? Cancelled(history, 1, 1) : Asked(history, 1, Call::kRequest_free, 1);
      PassFloats(history);
      PassFloats(history);
      BothFinalize(history);
      EXPECT_THAT(history.Findings(), IsEmpty()) << waits;
    }
  }
}

TEST(GivenUp, AFreedReceiveOfAnybodyMayHaveTakenAMessage) {
  LiteralHistory history(2);
  history.Posts(1, Literal::Receives(Call::kIrecv, 1, events::kAnySource), 1);
  Asked(history, 1, Call::kRequest_free, 1);
  history.Call_(0, Literal::Sends(Call::kSend, 2, 1));
  PassFloats(history);
  BothFinalize(history);
  EXPECT_THAT(history.Findings(), IsEmpty());
}

TEST(GivenUp, ASendThatCouldNotBeCancelledIsReceived) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Sends(Call::kIsend, 1, 1), 1);
  Asked(history, 0, Call::kCancel, 1);
  history.Open(1, Literal::Receives(Call::kRecv, 4, 0));
  history.Waits(0, 3, 1, 0);
  history.OpenOn(0, Call::kWait, 9, {});
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Over(1, Call::kRecv, 0, 0, 0);
  history.Left(1, Call::kRecv);
  PassFloats(history);
  BothFinalize(history);
  EXPECT_THAT(history.Findings(), IsEmpty());
}

TEST(GivenUp, ASendThatWasCancelledComesToNobody) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Sends(Call::kIsend, 1, 1), 1);
  Asked(history, 0, Call::kCancel, 1);
  Cancelled(history, 0, 1);
  history.Open(0, Literal::Receives(Call::kRecv, 7, 1));
  history.Open(1, Literal::Receives(Call::kRecv, 8, 0));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(GivenUp, WhoWaitsForACancelledRequestGoesOn) {
  LiteralHistory history(2);
  history.Posts(0, Literal::Receives(Call::kIrecv, 1, 1), 1);
  Asked(history, 0, Call::kCancel, 1);
  history.OpenOn(0, Call::kWait, 3, {1});
  history.Open(1, Literal::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

// Behind a receive that fails, nobody knows what it took.
TEST(GivenUp, ATruncatedMessageIsToldWhereTheReceiveFails) {
  LiteralHistory history(2);
  Event sent = Literal::Sends(Call::kSend, 1, 1);
  sent.count = 9;
  history.Call_(0, sent);
  history.Open(1, Literal::Receives(Call::kRecv, 2, 0));
  Event failed = Literal::Asks(Call::kRecv, 0);
  failed.phase = events::Phase::kLeave;
  failed.peer = 15;
  history.judge().Take(1, failed);
  PassFloats(history);
  BothFinalize(history);
  EXPECT_THAT(history.Findings(), ElementsAre("truncation: rank 0 sends 9 elements at line 1; rank "
                                              "1 has room for 1 at line 2"));
}

TEST(GivenUp, ATruncatedMessageIsToldWhereItEndsTheRank) {
  for (const Call wait : {Call::kRecv, Call::kWait}) {
    for (const int earlier : {0, int{events::kAnySource}}) {
      LiteralHistory history(2);
      Event sent = Literal::Sends(Call::kSend, 1, 1);
      history.Call_(0, sent);
      sent.count = 9;
      history.Call_(0, sent);
      history.Posts(1, Literal::Receives(Call::kIrecv, 2, earlier), 1);
      if (wait == Call::kRecv) {
        history.Open(1, Literal::Receives(Call::kRecv, 3, 0));
      } else {
        history.Posts(1, Literal::Receives(Call::kIrecv, 3, 0), 2);
        history.OpenOn(1, Call::kWait, 4, {2});
      }
      history.judge().Ended(0, End::kDied, 0, false);
      history.judge().Ended(1, End::kDied, 0, false);
      // A receive of anybody may have taken the large one, too.
      EXPECT_EQ(history.Causes().size(), earlier == 0 ? 1u : 0u);
    }
  }
}

// Of a communicator that was made by a call which is not followed.
TEST(GivenUp, NobodyKnowsWhoIsInAnUnknownCommunicator) {
  LiteralHistory history(2);
  Event received = Literal::Receives(Call::kRecv, 1, 1);
  Event sent = Literal::Sends(Call::kSend, 2, 1);
  received.comm = sent.comm = events::kUnknownComm;
  history.Got(0, received, 1);
  history.Call_(0, sent);
  BothFinalize(history);
  EXPECT_THAT(history.Findings(), IsEmpty());
}

TEST(GivenUp, ThreadsHaveNoOrderOfMessagesAndCollectives) {
  for (const bool threads : {false, true}) {
    LiteralHistory history(2);
    if (threads) history.judge().ThreadsMayCall(1);
    history.Call_(0, Literal::Asks(Call::kBarrier, 1));
    history.Call_(0, Literal::Sends(Call::kSend, 2, 1));
    history.Got(1, Literal::Receives(Call::kRecv, 3, 0), 0);
    history.Call_(1, Literal::Asks(Call::kBarrier, 4));
    EXPECT_EQ(history.Causes().size(), threads ? 0u : 1u);
  }
}

}  // namespace
}  // namespace lockstep::watch::judge
