// What proves a standstill, with processes that a test plays.
#include "watch/run/job.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "watch/run/testing/played_process.h"

namespace lockstep::watch::run {
namespace {

using events::Call;
using events::Event;
using events::Phase;

Event Leave(Call call) {
  Event event;
  event.phase = Phase::kLeave;
  event.call = call;
  event.thread = 1;
  return event;
}

// Two ranks on two hosts; each waits for a message of the other.
class JobTest : public testing::Test {
 protected:
  JobTest() {
    for (int rank = 0; rank < 2; ++rank) {
      Played& mine = played_[static_cast<std::size_t>(rank)];
      mine.facts.state = ProcessState::kSleeps;
      mine.Write(World(rank, 2));
      mine.Write(Receive(1 - rank));
      job_.Add(std::make_unique<PlayedProcess>(rank, 2, mine));
    }
  }

  bool LookOnce() {
    job_.Drain();
    job_.LookAtProcesses(false);
    return job_.LookForStandstill();
  }

  // So many looks, further apart than a proof needs; `between` plays what happens meanwhile.
  bool ProvedIn(int looks, const auto& between) {
    for (int look = 0; look < looks; ++look) {
      if (LookOnce()) return true;
      between(look);
      now_ns_ += 15'000'000;
    }
    return false;
  }

  std::vector<Played> played_ = std::vector<Played>(2);
  std::int64_t now_ns_ = 1;  // a clock that a test turns
  Job job_{2, {}, true, [this] { return now_ns_; }};
};

TEST_F(JobTest, WhoWentOnIsLookedAtOnlyWhereAnotherIsGone) {
  played_[0].went_on = played_[1].went_on = true;
  job_.Drain();
  job_.LookAtProcesses(false);
  EXPECT_EQ(played_[0].looks + played_[1].looks, 0);
  played_[1].went_on = false;
  played_[1].facts.state = ProcessState::kGone;
  job_.LookAtProcesses(false);
  EXPECT_EQ(played_[0].looks, 1);
  EXPECT_EQ(played_[1].looks, 1);
}

TEST_F(JobTest, TwoLooksWithNothingInBetweenProveIt) {
  ASSERT_TRUE(ProvedIn(1000, [](int) {}));
  const std::vector<judge::Finding> told = job_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, judge::Cause::kDeadlock);
  EXPECT_EQ(told[0].headline.text().find(
                "rank 0 (host node1) waits in MPI_Recv from rank 1 (host node2)"),
            0u)
      << told[0].headline.text();
}

TEST_F(JobTest, OneLookProvesNothing) {
  now_ns_ += 20'000'000;
  EXPECT_FALSE(LookOnce());
}

TEST_F(JobTest, WhoWroteInBetweenWasNotStuck) {
  // After a first look that found them stuck.
  EXPECT_FALSE(ProvedIn(20, [&](int look) {
    if (look == 0) return;
    played_[1].Write(Leave(Call::kRecv));
    played_[1].Write(Receive(0));
  }));
  EXPECT_TRUE(job_.Tell().empty());
}

TEST_F(JobTest, AnEventThatIsNotReadYetProvesNothing) {
  played_[1].facts.begun += 1;
  EXPECT_FALSE(ProvedIn(20, [](int) {}));
}

TEST_F(JobTest, ARankWhoseWatcherIsLostProvesNothing) {
  played_[1].facts.state = ProcessState::kUnknown;
  EXPECT_FALSE(ProvedIn(20, [](int) {}));
  job_.Over(false);
  EXPECT_TRUE(job_.Tell().empty());
  EXPECT_FALSE(job_.complete());
}

TEST_F(JobTest, WhoIsToldToEndAccusesNobody) {
  played_[1].facts.told_to_end = true;
  played_[1].facts.state = ProcessState::kGone;
  EXPECT_FALSE(ProvedIn(20, [](int) {}));
  EXPECT_TRUE(job_.Tell().empty());
}

TEST_F(JobTest, WhoIsGoneIsLostAndNotStuck) {
  played_[1].facts.state = ProcessState::kGone;
  ProvedIn(20, [](int) {});
  const std::vector<judge::Finding> told = job_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, judge::Cause::kLostRank);
  EXPECT_EQ(told[0].text.find("rank 1 (host node2) died without MPI_Finalize"), 0u);
}

// A launcher may have ended the second because of the first: which one that is was not seen.
TEST_F(JobTest, OfTwoThatDiedBetweenLooksNoneIsBlamed) {
  for (Played& played : played_) played.facts.state = ProcessState::kGone;
  ProvedIn(20, [](int) {});
  job_.Over(true);
  EXPECT_TRUE(job_.Tell().empty());
}

TEST_F(JobTest, WhoWasSeenDeadBeforeTheOtherIsBlamed) {
  played_[1].facts.state = ProcessState::kGone;
  ProvedIn(20, [&](int look) {
    // The first look finds what both wrote before.
    if (look == 2) played_[0].facts.state = ProcessState::kGone;
  });
  const std::vector<judge::Finding> told = job_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].culprits, std::vector<int>{1});
}

// What the first wrote last was read while the second was found gone already.
TEST_F(JobTest, WhoseLastEventsAreReadLateDiedNoLater) {
  for (Played& played : played_) played.facts.state = ProcessState::kGone;
  ProvedIn(20, [&](int look) {
    if (look < 2) played_[1].Write(Leave(Call::kRecv));
  });
  job_.Over(true);
  EXPECT_TRUE(job_.Tell().empty());
}

// Its launcher ended the other one, and was quicker than its exit.
TEST_F(JobTest, WhoExitsIsBlamedAlthoughTheOtherWasGoneBefore) {
  played_[1].facts.exited = true;
  played_[0].facts.state = ProcessState::kGone;
  ProvedIn(20, [&](int look) {
    if (look == 10) played_[1].facts.state = ProcessState::kGone;
  });
  const std::vector<judge::Finding> told = job_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text.find("rank 1 (host node2) exited with code 0 without MPI_Finalize"), 0u)
      << told[0].text;
}

// A rank that ended is over when all that it wrote was read.
TEST_F(JobTest, WhoIsGoneHasSaidAllBefore) {
  Played& mine = played_[1];
  for (int each = 0; each < 400'000; ++each) mine.Write(Leave(Call::kRecv));
  Event finalize = Receive(0);
  finalize.call = Call::kFinalize;
  mine.Write(finalize);
  mine.Write(Leave(Call::kFinalize));
  mine.facts.state = ProcessState::kGone;
  for (int look = 0; look < 20; ++look) LookOnce();
  EXPECT_TRUE(mine.events.empty());
  for (const judge::Finding& told : job_.Tell()) {
    EXPECT_NE(told.cause, judge::Cause::kLostRank) << told.text;
  }
}

// It writes as fast as it is read.
class TirelessProcess : public PlayedProcess {
 public:
  TirelessProcess(int rank, int size, Played& played) : PlayedProcess(rank, size, played) {}
  std::uint64_t Drain(std::uint64_t most, const Take& take) override {
    const std::vector<Event> some(most, Leave(Call::kRecv));
    take(some);
    given_ += most;
    return given_ < kAll ? most : 0;
  }
  std::uint64_t given() const { return given_; }

  static constexpr std::uint64_t kAll = 4'000'000;

 private:
  std::uint64_t given_ = 0;
};

// The ring of a rank that nobody reads meanwhile is full in the end.
TEST(Drain, AFastRankLetsOthersHaveTheirTurn) {
  Played fast;
  Played slow;
  Job job(2, {}, false);
  auto process = std::make_unique<TirelessProcess>(0, 2, fast);
  const TirelessProcess& tireless = *process;
  job.Add(std::move(process));
  job.Add(std::make_unique<PlayedProcess>(1, 2, slow));
  slow.Write(World(1, 2));
  EXPECT_TRUE(job.Drain());
  EXPECT_EQ(slow.taken, 1u);
  EXPECT_LT(tireless.given(), TirelessProcess::kAll / 10);
  EXPECT_TRUE(job.behind());
}

// Two ranks that compute.
class StopTest : public JobTest {
 protected:
  StopTest() {
    for (int rank = 0; rank < 2; ++rank) {
      Played& mine = played_[static_cast<std::size_t>(rank)];
      mine.Write(Leave(Call::kRecv));
      turned_.Add(std::make_unique<PlayedProcess>(rank, 2, mine));
    }
  }

  // Looks that are so far apart; what the last of them told.
  std::vector<judge::Finding> Look(int looks, std::int64_t apart_ms) {
    for (int look = 0; look < looks; ++look) {
      now_ns_ += apart_ms * 1'000'000;
      turned_.Drain();
      turned_.LookAtProcesses(false);
    }
    return turned_.Tell();
  }

  Job turned_{2, {}, true, [this] { return now_ns_; }};
};

TEST_F(StopTest, AShortStopIsNoNews) {
  for (int stop = 0; stop < 20; ++stop) {
    played_[1].facts.state = ProcessState::kStopped;
    EXPECT_TRUE(Look(9000, 1).empty());
    played_[1].facts.state = ProcessState::kSleeps;
    EXPECT_TRUE(Look(10, 1).empty());
  }
}

TEST_F(StopTest, ALongStopIsToldOnce) {
  played_[1].facts.state = ProcessState::kStopped;
  const std::vector<judge::Finding> told = Look(11'000, 1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, judge::Cause::kStoppedRank);
  EXPECT_EQ(told[0].text.find("rank 1 (host node2) is stopped"), 0u) << told[0].text;
  // Its launcher ends the others, which is no news.
  played_[0].facts.state = ProcessState::kGone;
  EXPECT_TRUE(Look(100, 1).empty());
}

TEST_F(StopTest, WhatFailsAfterAStopIsTold) {
  played_[1].facts.state = ProcessState::kStopped;
  EXPECT_EQ(Look(11'000, 1).size(), 1u);
  played_[1].facts.state = ProcessState::kSleeps;
  EXPECT_TRUE(Look(100, 1).empty());
  played_[0].facts.state = ProcessState::kGone;
  const std::vector<judge::Finding> told = Look(100, 1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, judge::Cause::kLostRank);
}

// A terminal stops ranks and watcher together.
TEST_F(StopTest, TimeInWhichNobodyLookedDoesNotCount) {
  played_[1].facts.state = ProcessState::kStopped;
  EXPECT_TRUE(Look(20, 1).empty());
  EXPECT_TRUE(Look(3, 3'600'000).empty());
}

TEST_F(StopTest, BehindCallsThatDifferLooksAreFurtherApart) {
  for (const Call call : {Call::kBarrier, Call::kAllreduce}) {
    Event event = Receive(events::kNoRoot);
    event.call = call;
    played_[call == Call::kBarrier ? 0 : 1].Write(event);
  }
  int looks = 0;
  while (looks < 50 && (Look(1, 100), !turned_.LookForStandstill())) ++looks;
  EXPECT_EQ(looks, 21);  // one that finds events, one that finds ranks stuck, and 2 s
}

TEST_F(JobTest, WithoutAllRanksNothingIsProved) {
  Job job(3, {}, true);
  std::vector<Played> played(2);
  for (int rank = 0; rank < 2; ++rank) {
    Played& mine = played[static_cast<std::size_t>(rank)];
    mine.Write(World(rank, 3));
    mine.Write(Receive(1 - rank));
    job.Add(std::make_unique<PlayedProcess>(rank, 3, mine));
  }
  for (int look = 0; look < 10; ++look) {
    job.Drain();
    EXPECT_FALSE(job.WantsLook());
    usleep(10'000);
  }
}

}  // namespace
}  // namespace lockstep::watch::run
