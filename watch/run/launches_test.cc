// Which launch a process belongs to, with processes that a test plays.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "watch/run/jobs.h"
#include "watch/run/testing/played_process.h"

namespace lockstep::watch::run {
namespace {

TEST(Launches, OfOneNameAreKeptApart) {
  std::int64_t now_ns = 1'000'000'000;
  Job job(2, {}, false, [&now_ns] { return now_ns; });
  std::vector<Played> played(4);
  const auto process = [&](int rank, int size, Played& mine) {
    return PlayedProcess(rank, size, mine);
  };
  played[0].started_ns = played[1].started_ns = 900'000'000;
  played[0].facts.state = ProcessState::kGone;
  job.Add(std::make_unique<PlayedProcess>(0, 2, played[0]));
  EXPECT_TRUE(job.CanHave(process(1, 2, played[1])));
  EXPECT_FALSE(job.CanHave(process(0, 2, played[2]))) << "it has one";
  EXPECT_FALSE(job.CanHave(process(1, 4, played[2]))) << "of another size";
  for (int look = 0; look < kStrangeLooks; ++look) {
    now_ns += 3'000'000;
    job.Drain();
    job.LookAtProcesses(false);
  }
  // A rank is gone by now: what began before may be its peer, what began later is a new attempt's.
  EXPECT_TRUE(job.CanHave(process(1, 2, played[1])));
  played[2].started_ns = now_ns + 1;
  EXPECT_FALSE(job.CanHave(process(1, 2, played[2])));
  EXPECT_FALSE(job.IsOver()) << "one never came";
  job.Add(std::make_unique<PlayedProcess>(1, 2, played[1]));
  EXPECT_FALSE(job.IsOver());
  played[1].facts.state = ProcessState::kGone;
  for (int look = 0; look < kStrangeLooks; ++look) job.LookAtProcesses(false);
  EXPECT_TRUE(job.IsOver());
}

// MPICH without Hydra names no launch: then ranks of two that run at a time would be one job.
TEST(Launches, WithoutANameAreNotJudgedWhereTheyMayBeMixed) {
  std::vector<Played> played(3);
  Job job(2, {}, false);
  for (const int rank : {0, 1}) {
    Played& mine = played[static_cast<std::size_t>(rank)];
    job.Add(std::make_unique<PlayedProcess>(rank, 2, mine, ""));
    mine.Write(World(rank, 2));
    events::Event call = World(rank, 2);
    call.phase = events::Phase::kEnter;
    call.call = rank == 0 ? events::Call::kBarrier : events::Call::kAllreduce;
    call.peer = events::kNoRoot;
    call.thread = events::kMainThreadNumber;
    mine.Write(call);
  }
  EXPECT_FALSE(job.MayBeMixedWith(PlayedProcess(0, 2, played[2])));
  EXPECT_TRUE(job.MayBeMixedWith(PlayedProcess(0, 2, played[2], "")));
  for (const int rank : {0, 1}) {
    played[static_cast<std::size_t>(rank)].facts.state = ProcessState::kGone;
    EXPECT_EQ(job.MayBeMixedWith(PlayedProcess(0, 2, played[2], "")), rank == 0);
  }
  job.Drain();
  EXPECT_TRUE(job.complete());
  EXPECT_EQ(job.Tell().size(), 1u);
  job.Mix();
  EXPECT_FALSE(job.complete());
}

// A launcher that ends parents because of what they spawned, or the other way round.
class SpawnTest : public testing::Test {
 protected:
  SpawnTest() {
    for (std::size_t each = 0; each < 2; ++each) {
      auto& job = jobs_[each == 0 ? "children" : "parents"];
      job = std::make_unique<Job>(1, judge::Options(), false);
      job->Add(std::make_unique<PlayedProcess>(0, 1, played_[each]));
    }
  }
  void Spawn() {
    events::Event call;
    call.phase = events::Phase::kEnter;
    call.call = events::Call::kComm_spawn;
    call.thread = events::kMainThreadNumber;
    parent_.Write(call);
  }
  // Whose ranks are called lost.
  std::vector<std::string> Look(int times) {
    std::vector<std::string> told;
    for (int look = 0; look < times; ++look) {
      NoteEndsElsewhere(jobs_);
      for (const auto& [name, job] : jobs_) {
        job->Drain();
        job->LookAtProcesses(false);
        for (const judge::Finding& finding : job->Tell()) {
          EXPECT_EQ(finding.cause, judge::Cause::kLostRank);
          told.push_back(name);
        }
      }
      LookAgainWhereOneEnded(jobs_);
    }
    return told;
  }

  std::vector<Played> played_ = std::vector<Played>(2);
  Played& child_ = played_[0];
  Played& parent_ = played_[1];
  Jobs jobs_;
};

TEST_F(SpawnTest, WhoIsEndedBecauseOfAChildIsNotLost) {
  Spawn();
  Look(1);
  child_.facts.exited = true;
  child_.facts.exit_code = 3;
  for (Played& each : played_) each.facts.state = ProcessState::kGone;
  EXPECT_EQ(Look(10), std::vector<std::string>{"children"});
}

TEST_F(SpawnTest, WhoIsEndedBecauseOfAParentIsNotLost) {
  Spawn();
  Look(1);
  parent_.facts.state = ProcessState::kGone;
  EXPECT_TRUE(Look(1).empty());
  child_.facts.state = ProcessState::kGone;
  EXPECT_EQ(Look(10), std::vector<std::string>{"parents"});
}

TEST_F(SpawnTest, WhoDiesBetweenTheLooksAtTwoJobsIsNoWitness) {
  Spawn();
  Look(1);
  parent_.ends_after_look = true;  // the look at children is over by then
  child_.facts.state = ProcessState::kGone;
  EXPECT_TRUE(Look(10).empty());
}

TEST_F(SpawnTest, OtherLaunchesAreNotTied) {
  Look(1);
  for (Played& each : played_) each.facts.state = ProcessState::kGone;
  EXPECT_EQ(Look(10), (std::vector<std::string>{"children", "parents"}));
}

TEST(Launches, ThatMayBeMixedTellNothing) {
  std::vector<Played> played(2);
  Job job(2, {}, false);
  for (const int rank : {0, 1}) {
    job.Add(std::make_unique<PlayedProcess>(rank, 2, played[static_cast<std::size_t>(rank)], ""));
  }
  job.Mix();
  played[0].facts.state = ProcessState::kGone;
  for (int look = 0; look < kStrangeLooks; ++look) job.LookAtProcesses(false);
  EXPECT_TRUE(job.Tell().empty());
}

}  // namespace
}  // namespace lockstep::watch::run
