// Epochs that some members of a window open for each other, and locks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

constexpr std::uint64_t kWindow = 815;

LiteralHistory Windows(int size) {
  LiteralHistory history(size);
  for (int rank = 0; rank < size; ++rank) {
    history.Makes(rank, events::Object::kWindow, 9, Call::kWin_create, 1, kWindow, rank, size);
  }
  return history;
}

Event Asks(Call call, int line, int target = events::kNoRoot, std::uint8_t flags = 0) {
  Event event = Literal::Asks(call, line);
  event.comm = kWindow;
  event.peer = target;
  event.flags = flags;
  return event;
}

// MPI_Win_post or MPI_Win_start, for some ranks.
Event With(LiteralHistory& history, int rank, Call call, int line,
           std::initializer_list<int> others) {
  return history.Naming(rank, Asks(call, line), others);
}

TEST(Windows, ATargetWaitsForOriginsThatNeverComplete) {
  LiteralHistory history = Windows(2);
  history.Call_(0, With(history, 0, Call::kWin_post, 2, {1}));
  history.Open(0, Asks(Call::kWin_wait, 3));
  history.Call_(1, With(history, 1, Call::kWin_start, 4, {0}));
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0));
  EXPECT_FALSE(history.judge().Standstill().soft);
  EXPECT_THAT(history.Findings(),
              ElementsAre("deadlock: rank 0 waits in MPI_Win_wait at line 3; rank 1 is in MPI_Recv "
                          "from rank 0, tag 0, at line 5"));
}

TEST(Windows, AnOriginWaitsForTargetsThatNeverPost) {
  for (const Call call : {Call::kWin_start, Call::kWin_complete}) {
    LiteralHistory history = Windows(2);
    const Event start = With(history, 1, Call::kWin_start, 4, {0});
    call == Call::kWin_start ? history.Open(1, start) : history.Call_(1, start);
    if (call == Call::kWin_complete) history.Open(1, Asks(call, 5));
    history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
    EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
    EXPECT_TRUE(history.judge().Standstill().soft);  // what it puts may be kept
  }
}

TEST(Windows, EpochsAreCounted) {
  LiteralHistory history = Windows(3);
  for (int epoch = 0; epoch < 3; ++epoch) {
    history.Call_(1, With(history, 1, Call::kWin_start, 4, {0}));
    history.Call_(1, Asks(Call::kWin_complete, 5));
  }
  history.Open(1, Literal::Asks(Call::kBarrier, 6));
  history.Open(2, Literal::Asks(Call::kBarrier, 6));
  for (int epoch = 0; epoch < 3; ++epoch) {
    history.Call_(0, With(history, 0, Call::kWin_post, 2, {1}));
    history.Open(0, Asks(Call::kWin_wait, 3));
    EXPECT_THAT(history.Stuck(), IsEmpty());
    history.Left(0, Call::kWin_wait);
  }
  history.Call_(0, With(history, 0, Call::kWin_post, 2, {1, 2}));
  history.Open(0, Asks(Call::kWin_wait, 3));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1, 2));
}

// What it has put may be large.
TEST(Windows, WhoCompletesMayBeOnItsWay) {
  LiteralHistory history = Windows(3);
  history.Call_(0, With(history, 0, Call::kWin_post, 2, {1}));
  history.Call_(1, With(history, 1, Call::kWin_start, 4, {0, 2}));
  history.Open(1, Asks(Call::kWin_complete, 5));
  history.Open(0, Asks(Call::kWin_wait, 3));
  history.Open(2, Literal::Receives(Call::kRecv, 6, 0));
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

struct Locks : testing::Test {
  LiteralHistory history = Windows(3);

  void Lock(int rank, std::uint8_t flags) {
    history.Call_(rank, Asks(Call::kWin_lock, 2, 2, flags));
  }
  void TargetWaits() { history.Open(2, Literal::Asks(Call::kBarrier, 7)); }
};

TEST_F(Locks, OneThatIsNeverGivenBackKeepsOthersOut) {
  Lock(0, events::kExclusive);
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Asks(Call::kWin_lock, 4, 2));
  EXPECT_THAT(history.Stuck(), IsEmpty());  // its target goes on
  TargetWaits();
  EXPECT_TRUE(history.judge().Standstill().soft);
  EXPECT_THAT(
      history.Findings(),
      ElementsAre("deadlock: rank 0 waits in MPI_Recv from rank 1, tag 0, at line 3; rank 1 "
                  "is in MPI_Win_lock at line 4; 3 ranks are stuck"));
}

TEST_F(Locks, MembersMayBeReadLater) {
  LiteralHistory late(3);
  for (const int rank : {0, 1, 2}) {
    late.Makes(rank, events::Object::kWindow, 9, Call::kWin_create, 1, kWindow, rank, 3);
    if (rank == 2) late.Open(2, Literal::Asks(Call::kBarrier, 7));
    if (rank == 0) late.Call_(0, Asks(Call::kWin_lock, 2, 2, events::kExclusive));
    if (rank == 0) late.Open(0, Literal::Receives(Call::kRecv, 3, 1));
    if (rank == 1) late.Open(1, Asks(Call::kWin_lock, 4, 2));
  }
  EXPECT_THAT(late.Stuck(), ElementsAre(0, 1, 2));
}

TEST_F(Locks, OneThatWasGivenBackKeepsNobodyOut) {
  Lock(0, events::kExclusive);
  history.Call_(0, Asks(Call::kWin_unlock, 3, 2));
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Asks(Call::kWin_lock, 4, 2, events::kExclusive));
  TargetWaits();
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST_F(Locks, SharedOnesGoTogether) {
  history.Call_(0, Asks(Call::kWin_lock_all, 2));
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Asks(Call::kWin_lock, 4, 2));
  TargetWaits();
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

TEST_F(Locks, AllOfAWindowAreTakenTogether) {
  Lock(0, events::kExclusive);
  history.Open(0, Literal::Receives(Call::kRecv, 3, 1));
  history.Open(1, Asks(Call::kWin_lock_all, 4));
  TargetWaits();
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1, 2));
}

// Two that want it at a time, and all others wait for both: one of them has it, and goes on.
TEST_F(Locks, WhoGivesItBackMayTakeItsTime) {
  Lock(0, events::kExclusive);
  Lock(1, events::kExclusive);  // a library may return before
  history.Open(0, Asks(Call::kWin_unlock, 3, 2));
  history.Open(1, Asks(Call::kWin_flush, 4, 2));
  TargetWaits();
  EXPECT_THAT(history.Stuck(), IsEmpty());
}

}  // namespace
}  // namespace lockstep::watch::judge
