// Of ranks of one host that end, who is blamed: with processes that a test plays.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "watch/run/job.h"
#include "watch/run/testing/played_process.h"

namespace lockstep::watch::run {
namespace {

// Two ranks on one host.
class OneHostTest : public testing::Test {
 protected:
  OneHostTest() {
    for (int rank = 0; rank < 2; ++rank) {
      Played& mine = played_[static_cast<std::size_t>(rank)];
      mine.Write(World(rank, 2));
      one_host_.Add(std::make_unique<PlayedProcess>(rank, 2, mine));
    }
  }
  void Look() {
    one_host_.Drain();
    one_host_.LookAtProcesses(false);
  }

  std::vector<Played> played_ = std::vector<Played>(2);
  Job one_host_{2, {}, false};
};

TEST_F(OneHostTest, OneLookMoreTellsWhoDiedFirst) {
  played_[1].facts.state = ProcessState::kGone;
  Look();
  played_[0].facts.state = ProcessState::kGone;
  for (int look = 0; look < 10; ++look) Look();
  const std::vector<judge::Finding> told = one_host_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].culprits, std::vector<int>{1});
}

TEST_F(OneHostTest, WhoEndsBetweenTheLooksAtOthersIsNoWitness) {
  played_[1].facts.state = ProcessState::kGone;
  played_[0].ends_after_look = true;
  for (int look = 0; look < 10; ++look) Look();
  EXPECT_TRUE(one_host_.Tell().empty());
}

// A busy launcher tells its ranks to end one by one, and is seen to do so.
TEST_F(OneHostTest, WhomTheLauncherEndedIsNotBlamed) {
  played_[1].facts.state = ProcessState::kGone;
  played_[1].facts.ended_ticks = 5;
  for (int look = 0; look < 10; ++look) Look();
  // By its handler of that signal, or because it lost the other one.
  played_[0].facts.exited = true;
  played_[0].facts.exit_code = 1;
  played_[0].facts.exited_ticks = 6;
  played_[0].facts.state = ProcessState::kGone;
  for (int look = 0; look < 10; ++look) Look();
  one_host_.Over(true);
  EXPECT_TRUE(one_host_.Tell().empty());
}

// It waits for a rank that the launcher ended already, until it is ended, too.
TEST_F(OneHostTest, WhoIsLeftByTheLauncherForAWhileDoesNotHang) {
  for (const bool by_launcher : {true, false}) {
    std::int64_t now_ns = 1;
    std::vector<Played> played(3);
    Job job(3, {}, false, [&] { return now_ns; });
    for (int rank = 0; rank < 3; ++rank) {
      Played& mine = played[static_cast<std::size_t>(rank)];
      mine.facts.state = rank == 2 ? ProcessState::kSleeps : ProcessState::kGone;
      mine.facts.ended_ticks = by_launcher && rank != 2 ? 5 : 0;
      mine.Write(World(rank, 3));
      job.Add(std::make_unique<PlayedProcess>(rank, 3, mine));
    }
    played[2].Write(Receive(0));
    for (int look = 0; look < 100; ++look, now_ns += 15'000'000) {
      job.Drain();
      job.LookAtProcesses(false);
      job.LookForStandstill();
    }
    EXPECT_EQ(job.Tell().empty(), by_launcher);
  }
}

TEST_F(OneHostTest, WhoDiedBeforeTheLauncherEndedOthersIsBlamed) {
  played_[1].facts.state = ProcessState::kGone;
  Look();
  played_[0].facts.state = ProcessState::kGone;
  played_[0].facts.ended_ticks = 5;
  for (int look = 0; look < 10; ++look) Look();
  const std::vector<judge::Finding> told = one_host_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].culprits, std::vector<int>{1});
}

// The launcher also told it to end, while it exited.
TEST_F(OneHostTest, WhoExitedBeforeTheLauncherEndedRanksIsBlamed) {
  for (Played& played : played_) {
    played.facts.state = ProcessState::kGone;
    played.facts.ended_ticks = 5;
  }
  played_[1].facts.exited = true;
  played_[1].facts.exit_code = 3;
  played_[1].facts.exited_ticks = 4;
  for (int look = 0; look < 10; ++look) Look();
  const std::vector<judge::Finding> told = one_host_.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].culprits, std::vector<int>{1});
}

}  // namespace
}  // namespace lockstep::watch::run
