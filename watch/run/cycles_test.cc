// Two ranks in a loop of one collective.
#include "watch/run/cycles.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "watch/run/job.h"
#include "watch/run/testing/played_process.h"

namespace lockstep::watch::run {
namespace {

using events::Call;
using events::Event;
using events::Phase;

// Both are read up to the same call, and then what both have over is taken at once.
TEST(TakeCycles, WhatAllHaveOverIsTakenAtOnce) {
  std::vector<Played> played(2);
  Job job(2, {}, false);
  Event call;
  call.phase = Phase::kEnterLeft;
  call.call = Call::kBarrier;
  call.thread = 1;
  call.comm = events::kWorldComm;
  call.peer = events::kNoRoot;
  call.tag = events::kNoOp;
  for (int rank = 0; rank < 2; ++rank) {
    Played& mine = played[static_cast<std::size_t>(rank)];
    job.Add(std::make_unique<PlayedProcess>(rank, 2, mine));
    Event world;
    world.phase = Phase::kMade;
    world.comm = events::kWorldComm;
    world.peer = rank;
    world.count = 2;
    mine.Write(world);
    mine.Write(call);
    mine.coming = {.calls = {call}, .length = 1, .over = 0};
  }
  job.Drain();
  played[0].coming.over = 100;
  job.Drain();
  EXPECT_EQ(played[0].passed, 0u);  // few are read
  played[0].coming.over = 1'000'000;
  played[1].coming.over = 1'000'150;
  job.Drain();
  EXPECT_EQ(played[0].coming.over + played[1].coming.over, 0u);
  EXPECT_EQ(played[1].passed, 1'000'000u);
  EXPECT_EQ(played[1].taken, 2u + 150);
  EXPECT_EQ(job.events(), played[0].taken + played[1].taken + 4'000'000);
  // Rank 1 is 150 calls ahead: what rank 0 calls now meets one of these.
  call.call = Call::kAllreduce;
  EXPECT_TRUE(job.Tell().empty());
  played[0].Write(call);
  job.Drain();
  const std::vector<judge::Finding> told = job.Tell();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, judge::Cause::kCallMismatch);
}

}  // namespace
}  // namespace lockstep::watch::run
