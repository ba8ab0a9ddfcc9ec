// MPI_Isendrecv: one request of the program that sends and receives. The judge knows two, and the
// program waits for both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using History_ = LiteralHistory;

constexpr std::uint32_t kReceive = 1;
constexpr std::uint32_t kSend = 2;

void Exchanges(LiteralHistory& history, int rank, int to, int send_tag, int from, int tag) {
  Event send = History_::Sends(Call::kIsendrecv, 1, to, send_tag);
  send.phase = events::Phase::kPart;
  send.request = kSend;
  history.Open(rank, send);
  history.Posts(rank, History_::Receives(Call::kIsendrecv, 1, from, tag), kReceive);
}

void Waits(LiteralHistory& history, int rank) {
  history.OpenOn(rank, Call::kWait, 2, {kReceive, kSend});
}

TEST(Exchanges, MeetWhatSendsAndReceivesOtherwise) {
  LiteralHistory history(2);
  Exchanges(history, 0, 1, 5, 1, 6);
  history.Open(1, History_::Receives(Call::kRecv, 3, 0, 5));
  history.Over(1, Call::kRecv, 0, 0, 5);
  history.Left(1, Call::kRecv);
  history.Call_(1, History_::Sends(Call::kSend, 4, 0, 6));
  Waits(history, 0);
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Over(0, Call::kWait, kSend, 1, 6);
  history.Over(0, Call::kWait, kReceive, 1, 6);
  history.Left(0, Call::kWait);
  for (int rank = 0; rank < 2; ++rank) history.EnterFinalize(rank);
  EXPECT_THAT(history.Findings(), IsEmpty());
}

TEST(Exchanges, WaitForTheirReceive) {
  LiteralHistory history(2);
  for (int rank = 0; rank < 2; ++rank) {
    Exchanges(history, rank, 1 - rank, 5, 1 - rank, 6);
    Waits(history, rank);
  }
  EXPECT_THAT(history.Findings(),
              ElementsAre("tag_mismatch: rank 0 waits in MPI_Wait for MPI_Isendrecv from rank 1, "
                          "tag 6, at line 2; the message came with tag 5"));
}

// A message that nobody receives may be buffered.
TEST(Exchanges, WaitForTheirSend) {
  LiteralHistory history(2);
  Exchanges(history, 0, 1, 5, 1, 6);
  history.Call_(1, History_::Sends(Call::kSend, 4, 0, 6));
  Waits(history, 0);
  history.Open(1, History_::Receives(Call::kRecv, 3, 0, 7));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // its own receive may take a while
  history.Over(0, Call::kWait, kSend, 1, 6);
  history.Over(0, Call::kWait, kReceive, 1, 6);
  history.Left(0, Call::kWait);
  history.Open(0, History_::Receives(Call::kRecv, 5, 1, 8));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Exchanges, TheirArgumentsAreBothLookedAt) {
  LiteralHistory history(2);
  Exchanges(history, 0, 7, 5, 1, 6);
  EXPECT_THAT(history.Causes(), ElementsAre("invalid_rank"));
  LiteralHistory tags(2);
  Exchanges(tags, 0, 1, -5, 1, 6);
  EXPECT_THAT(tags.Causes(), ElementsAre("invalid_tag"));
}

TEST(Exchanges, WhatIsNeverAwaitedIsToldOnce) {
  LiteralHistory history(2);
  Exchanges(history, 0, 1, 5, 1, 5);
  Exchanges(history, 1, 0, 5, 0, 5);
  Waits(history, 1);
  history.Over(1, Call::kWait, kSend, 0, 5);
  history.Over(1, Call::kWait, kReceive, 0, 5);
  history.Left(1, Call::kWait);
  history.EnterFinalize(0);
  EXPECT_THAT(history.Findings(), ElementsAre("unfinished_request: rank 0 never waits for its "
                                              "MPI_Isendrecv at line 1"));
}

// The library does not say which message it took.
TEST(Exchanges, OfAnySourceAreNotCompared) {
  for (const int source : {0, events::kAnySource}) {
    LiteralHistory history(2);
    history.Call_(0, History_::Sends(Call::kSend, 7, 1, 5));
    Exchanges(history, 1, 0, 6, source, 5);
    Waits(history, 1);
    history.Over(1, Call::kWait, kSend, events::kProcNull, 0);
    history.Over(1, Call::kWait, kReceive, events::kProcNull, 0);
    history.Left(1, Call::kWait);
    history.Got(0, History_::Receives(Call::kRecv, 8, 1, 6), 1, 6);
    for (int rank = 0; rank < 2; ++rank) history.EnterFinalize(rank);
    EXPECT_THAT(history.Findings(), IsEmpty());
  }
}

// Then nobody knows which messages are left: one that looks so may have been received.
TEST(Exchanges, OfAnyTagLeaveSendsToThemUnknown) {
  LiteralHistory history(3);
  history.Call_(0, History_::Sends(Call::kSend, 1, 1, 5));
  history.Posts(0, History_::Sends(Call::kIssend, 2, 1, 5), 7);
  history.Posts(0, History_::Receives(Call::kIrecv, 3, 2), 8);
  history.OpenOn(0, Call::kWaitall, 4, {7, 8});
  Exchanges(history, 1, events::kProcNull, 0, 0, events::kAnyTag);
  Waits(history, 1);
  history.Over(1, Call::kWait, kSend, events::kProcNull, 0);
  history.Over(1, Call::kWait, kReceive, events::kProcNull, 0);
  history.Left(1, Call::kWait);
  history.Got(1, History_::Receives(Call::kRecv, 5, 0, 5), 0, 5);
  history.Open(1, History_::Receives(Call::kRecv, 6, 0, 9));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 2 may send yet
}

// Nobody knows what such a request needs.
TEST(Exchanges, CallsThatAreNotFollowedAreNamedAndProveNothing) {
  LiteralHistory history(2);
  history.Call_(0, History_::Asks(Call::kPsend_init, 1));
  history.OpenOn(0, Call::kStart, 2, {events::kOtherRequest});
  history.Left(0, Call::kStart);
  history.OpenOn(0, Call::kWait, 3, {events::kOtherRequest});
  history.Open(1, History_::Receives(Call::kRecv, 4, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  EXPECT_THAT(history.judge().not_followed(), ElementsAre(Call::kPsend_init));
  LiteralHistory followed(2);
  followed.Call_(0, History_::Sends(Call::kSend, 1, 1));
  EXPECT_THAT(followed.judge().not_followed(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::watch::judge
