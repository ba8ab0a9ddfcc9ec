// Which launch a process belongs to, with processes that a test plays.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "watch/run/job.h"
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
    events::Event call;
    call.phase = events::Phase::kMade;
    call.comm = events::kWorldComm;
    call.peer = rank;
    call.count = 2;
    mine.Write(call);
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
