// Ranks of which several threads may call MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

// Those that are no calls of MPI may free it, too.
TEST(Threads, ARankOfSeveralThreadsIsStuckWhereAllOfThemAre) {
  LiteralHistory history(2);
  Event second = Literal::Receives(Call::kRecv, 4, 0);
  second.thread = 2;
  history.judge().ThreadsMayCall(1);
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Literal::Asks(Call::kBarrier, 5));
  history.Open(1, second);
  EXPECT_THAT(history.Stuck(), IsEmpty());  // not known how many there are
  history.judge().ThreadsLive(1, 3);
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.judge().ThreadsLive(1, 2);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("deadlock: rank 0 waits in MPI_Recv from rank 1, tag 0, at line 3; rank 1 "
                  "is in MPI_Barrier at line 5"));
}

TEST(Threads, OneThreadThatGoesOnMayFreeTheOthers) {
  LiteralHistory history(2);
  Event second = Literal::Receives(Call::kRecv, 4, 0, 7);
  second.thread = 2;
  history.judge().ThreadsMayCall(1);
  history.judge().ThreadsLive(1, 2);
  history.Call_(0, Literal::Sends(Call::kSend, 1, 1, 7));  // to the second one
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0));
  history.Open(1, second);
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST(Threads, WhichOfTheirMessagesComesFirstIsNotKnown) {
  for (const bool threads : {true, false}) {
    LiteralHistory history(2);
    if (threads) history.judge().ThreadsMayCall(1);
    Event large = Literal::Sends(Call::kSend, 2, 0);
    large.count = 100;
    if (threads) large.thread = 2;
    history.Call_(1, Literal::Sends(Call::kSend, 1, 0));
    history.Call_(1, large);
    // The second one overtook the first.
    Event room = Literal::Receives(Call::kRecv, 3, 1);
    room.count = 100;
    history.Got(0, room, 1);
    history.Got(0, Literal::Receives(Call::kRecv, 4, 1), 1);
    if (threads) {
      EXPECT_THAT(history.Causes(), IsEmpty());
    } else {
      EXPECT_THAT(history.Causes(), ElementsAre("truncation"));
    }
  }
}

}  // namespace
}  // namespace lockstep::watch::judge
