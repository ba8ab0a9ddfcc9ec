// Cycles of collectives that are taken at once, and what the same calls do as events.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using events::Cycle;
using Literal = LiteralHistory;

Event Over(Call call, int line, int root = events::kNoRoot) {
  Event event = Literal::Asks(call, line);
  event.phase = events::Phase::kEnterLeft;
  event.peer = root;
  event.type = kInt;
  event.count = 4;
  return event;
}

Cycle CycleOf(const std::vector<Event>& calls) {
  Cycle cycle;
  std::ranges::copy(calls, cycle.calls.begin());
  cycle.length = calls.size();
  return cycle;
}

class Cycles : public testing::Test {
 protected:
  static constexpr int kSize = 3;

  Cycles() {
    for (int rank = 0; rank < kSize; ++rank) {
      history_.Communicator(rank, kOtherComm, rank, kSize);
      history_.Call_(rank, Literal::Asks(Call::kBarrier, 1));
    }
    calls_.back().comm = kOtherComm;
  }
  bool Take(const Cycle& cycle, std::uint64_t times = 1000) {
    return history_.judge().TakeCycles(std::vector<Cycle>(kSize, cycle), times);
  }

  std::vector<Event> calls_ = {Over(Call::kAllreduce, 2), Over(Call::kBcast, 3, 1)};
  LiteralHistory history_{kSize};
};

TEST_F(Cycles, EachCallCounts) {
  EXPECT_TRUE(Take(CycleOf(calls_)));
  const auto& comms = history_.judge().history().communicators;
  for (int rank = 0; rank < kSize; ++rank) {
    const auto member = static_cast<std::size_t>(rank);
    EXPECT_EQ(comms.at(events::kWorldComm).called[member], 1001u);
    EXPECT_EQ(comms.at(kOtherComm).called[member], 1000u);
  }
  // Who calls something else after them is found where it stands.
  for (int rank = 0; rank < 2; ++rank) history_.Open(rank, Literal::Asks(Call::kBarrier, 7));
  history_.Open(2, Over(Call::kBcast, 8, 1));
  EXPECT_EQ(history_.Findings(), std::vector<std::string>{
                                     "call_mismatch: rank 2 calls MPI_Bcast at line 8 where rank 0 "
                                     "calls MPI_Barrier at line 7"});
}

TEST_F(Cycles, WhoIsBehindIsReadFirst) {
  const Cycle cycle = CycleOf(calls_);
  for (const Event& call : calls_) history_.Open(0, call);
  EXPECT_EQ(history_.judge().Behind(0, cycle), 0u);
  EXPECT_EQ(history_.judge().Behind(1, cycle), 2u);
  EXPECT_FALSE(Take(cycle));
  for (int rank = 1; rank < kSize; ++rank) {
    for (const Event& call : calls_) history_.Open(rank, call);
    EXPECT_EQ(history_.judge().Behind(rank, cycle), 0u);
  }
  EXPECT_TRUE(Take(cycle));
}

TEST_F(Cycles, WhatMayDifferIsRead) {
  const std::vector<Cycle> same(kSize, CycleOf(calls_));
  const auto taken = [&](int rank, const Cycle& cycle) {
    std::vector<Cycle> cycles = same;
    cycles[static_cast<std::size_t>(rank)] = cycle;
    return history_.judge().TakeCycles(cycles, 5);
  };
  for (const auto change : std::vector<void (*)(Event&)>{
           [](Event& call) { call.call = Call::kReduce; }, [](Event& call) { call.peer = 2; },
           [](Event& call) { call.tag = 3; }, [](Event& call) { ++call.count; },
           [](Event& call) { call.type = 259; }, [](Event& call) { call.comm = 12; },
           [](Event& call) { call.thread = 2; },
           [](Event& call) { call.flags = events::kBadArgument; },
           [](Event& call) { call.phase = events::Phase::kEnter; }}) {
    for (int rank = 0; rank < kSize; ++rank) {
      Cycle other = same.front();
      change(other.calls[1]);
      EXPECT_FALSE(taken(rank, other));
    }
  }
  EXPECT_FALSE(taken(1, CycleOf({calls_.front()})));
  EXPECT_FALSE(taken(1, CycleOf({calls_.back(), calls_.front()})));
  EXPECT_FALSE(history_.judge().TakeCycles(std::span(same).first(2), 5));
  EXPECT_TRUE(taken(1, same.front()));
}

TEST_F(Cycles, NotOfRanksThatAreInACall) {
  history_.Open(2, Literal::Receives(Call::kRecv, 9, 0));
  EXPECT_FALSE(Take(CycleOf(calls_)));
}

TEST_F(Cycles, NotOfSomeOfTheRanks) {
  for (int rank = 0; rank < 2; ++rank) history_.Communicator(rank, 12, rank, 2);
  calls_.front().comm = 12;
  EXPECT_FALSE(Take(CycleOf(calls_)));
}

TEST_F(Cycles, NotWhereARankHasEnded) {
  history_.Finalizes(2);
  EXPECT_FALSE(Take(CycleOf(calls_)));
}

TEST_F(Cycles, NotWhereRacesAreAskedFor) {
  LiteralHistory races(1, {.races = true});
  races.Call_(0, Literal::Asks(Call::kBarrier, 1));
  EXPECT_FALSE(races.judge().TakeCycles(std::vector{CycleOf({calls_.front()})}, 5));
  LiteralHistory none(1);
  none.Call_(0, Literal::Asks(Call::kBarrier, 1));
  EXPECT_TRUE(none.judge().TakeCycles(std::vector{CycleOf({calls_.front()})}, 5));
}

}  // namespace
}  // namespace lockstep::watch::judge
