// How ranks end, faults, virtual time, and that it all follows from the seed.
#include "core/comm/sim/sim_world.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/comm/recorded.h"
#include "core/device/device.h"
#include "core/journal/journal.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr collective::Operation kBarrier = {.collective = collective::Collective::kBarrier};
constexpr collective::Operation kSum = {.collective = collective::Collective::kAllReduce,
                                        .count = 1};

Status Blocked(RankContext& context, const collective::Operation& operation = kBarrier) {
  const auto communicator = context.Connect();
  const auto stream = context.device().NewInlineStream();
  float value = 1;
  return communicator->Enqueue(operation, {&value, &value}, *stream);
}

TEST(SimWorldTest, EveryWayToEnd) {
  SimWorld world({.ranks = 12, .rules = SimRules::kMpi});
  world.Schedule({SimFault::Kind::kKill, 6, 5 * kMillisecond});
  world.Schedule({SimFault::Kind::kStop, 7, 5 * kMillisecond});
  world.Schedule({SimFault::Kind::kStop, 8, 5 * kMillisecond});
  world.Schedule({SimFault::Kind::kContinue, 8, 50 * kMillisecond});
  world.Schedule({SimFault::Kind::kContinue, 11, 20 * kMillisecond});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    switch (context.rank()) {
      case 0:
        return OkStatus();
      case 1:
        return SystemFailed("it returned this");
      case 2:
        throw std::runtime_error("it threw this");
      case 3:
        context.Exit(3);
      case 4:
        context.Hang();
      case 5:
        return Blocked(context);
      case 9:
        context.Linger();
      case 10:
        context.Crash("SIGSEGV");
      case 11:
        context.Inject({SimFault::Kind::kStop, 11, 0});
        EXPECT_EQ(context.now_ns(), 20 * kMillisecond);
        context.Inject({SimFault::Kind::kKill, 11, 0});
        ADD_FAILURE() << "it goes on";
    }
    context.Sleep(10 * kMillisecond);
    return OkStatus();
  });
  const auto at = [&](std::size_t rank) { return report.ranks[rank]; };
  EXPECT_EQ(at(0).state, RankState::kFinished);
  EXPECT_EQ(at(1).state, RankState::kFailed);
  EXPECT_EQ(at(1).message, "it returned this");
  EXPECT_EQ(at(2).state, RankState::kFailed);
  EXPECT_EQ(at(2).message, "it threw this");
  EXPECT_EQ(at(3).state, RankState::kExited);
  EXPECT_EQ(at(3).exit_code, 3);
  EXPECT_EQ(at(4).state, RankState::kHung);
  EXPECT_EQ(at(4).where, "nothing: it hangs");
  EXPECT_FALSE(at(4).waiting.has_value());
  EXPECT_EQ(at(5).state, RankState::kHung);
  ASSERT_TRUE(at(5).waiting.has_value());
  EXPECT_EQ(at(5).waiting->sequence, 0u);
  EXPECT_EQ(at(5).where, "barrier");
  EXPECT_EQ(at(6).state, RankState::kKilled);
  EXPECT_EQ(at(6).at_ns, 5 * kMillisecond);
  EXPECT_EQ(at(7).state, RankState::kStopped);
  EXPECT_EQ(at(8).state, RankState::kFinished);
  EXPECT_EQ(at(8).at_ns, 50 * kMillisecond);
  EXPECT_EQ(at(9).state, RankState::kFinished);
  EXPECT_EQ(at(10).state, RankState::kCrashed);
  EXPECT_EQ(at(10).message, "SIGSEGV");
  EXPECT_EQ(at(11).state, RankState::kKilled);
  EXPECT_EQ(at(11).at_ns, 20 * kMillisecond);
  EXPECT_TRUE(report.complete);
}

struct Trace {
  std::vector<std::string>& into;
  std::string word;
  ~Trace() { into.push_back(word); }
};

// However a rank ends, what lives on its stacks is destroyed, the work of its streams first.
TEST(SimWorldTest, StacksAreUnwound) {
  for (const std::string how : {"killed", "hung", "exited"}) {
    std::vector<std::string> order;
    SimWorld world({.ranks = 2});
    if (how == "killed") world.Schedule({SimFault::Kind::kKill, 1, kMillisecond});
    const SimReport report = world.Run([&](RankContext& context) -> Status {
      if (context.rank() == 0) return OkStatus();
      const Trace body{order, "body"};
      const auto communicator = context.Connect();
      const auto stream = context.device().NewStream();
      const auto inline_stream = context.device().NewInlineStream();
      stream->Enqueue([&] {
        const Trace work{order, "work"};
        return communicator->Enqueue(kBarrier, {}, *inline_stream);
      });
      context.Sleep(2 * kMillisecond);
      if (how == "exited") context.Exit(0);
      const Status status = stream->Synchronize(Deadline::AfterSeconds(1e6));
      order.push_back("goes on: " + status.message());
      return OkStatus();
    });
    EXPECT_EQ(NameOf(report.ranks[1].state), how);
    EXPECT_EQ(order, (std::vector<std::string>{"work", "body"})) << how;
  }
}

// An exception that is handled while other ranks run stays this rank's own.
TEST(SimWorldTest, ExceptionsInFlightOnSeveralRanks) {
  std::vector<std::string> caught(4);
  SimWorld world({.ranks = 4, .seed = 5});
  const SimReport report = world.Run([&](RankContext& context) -> Status {
    try {
      throw std::runtime_error(std::to_string(context.rank()));
    } catch (const std::exception& error) {
      context.Sleep(static_cast<std::int64_t>(10 - context.rank()));
      try {
        throw;
      } catch (const std::exception& again) {
        caught[static_cast<std::size_t>(context.rank())] = again.what();
      }
      context.Sleep(3);
      EXPECT_EQ(error.what(), std::to_string(context.rank()));
    }
    return OkStatus();
  });
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1", "2", "3"}));
  for (const RankEnd& end : report.ranks) EXPECT_EQ(end.state, RankState::kFinished);
}

TEST(SimWorldTest, TimeIsVirtual) {
  SimWorld world({.ranks = 1});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const Deadline hour = Deadline::AfterSeconds(3000);
    EXPECT_EQ(NowTicks(), 0u);
    context.Compute(2'000 * 1000 * kMillisecond);
    EXPECT_EQ(NowTicks(), 2'000'000'000'000u);
    EXPECT_EQ(hour.RemainingNs(), 1'000'000'000'000);
    const auto event = context.device().NewEvent();
    EXPECT_EQ(event->Await(hour).code(), StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(hour.Passed());
    return OkStatus();
  });
  EXPECT_EQ(report.end_ns, 3'000'000'000'000);
}

TEST(SimWorldTest, WhatWaitsThroughALongSilenceHangs) {
  SimWorld world({.ranks = 2, .silence_ns = 150 * kMillisecond});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto event = context.device().NewEvent();
    return event->Await(Deadline::AfterSeconds(context.rank() == 0 ? 0.1 : 0.3));
  });
  EXPECT_EQ(report.ranks[0].state, RankState::kFailed);
  EXPECT_EQ(report.ranks[1].state, RankState::kHung);
  EXPECT_EQ(report.ranks[1].where, "an event");
  EXPECT_EQ(report.end_ns, 100 * kMillisecond);
}

TEST(SimWorldTest, SilenceIsOfAllRanks) {
  SimWorld world({.ranks = 2, .silence_ns = 150 * kMillisecond});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    if (context.rank() == 0) return context.Sleep(1000 * kMillisecond), OkStatus();
    for (int i = 0; i < 20; ++i) context.Compute(100 * kMillisecond);
    return OkStatus();
  });
  EXPECT_EQ(report.ranks[0].state, RankState::kFinished);
  EXPECT_EQ(report.ranks[1].state, RankState::kFinished);
  EXPECT_EQ(report.end_ns, 2000 * kMillisecond);
}

TEST(SimWorldTest, ARankMeetsAllOrWaitsForEver) {
  std::vector<std::int64_t> met_ns(3);
  const auto body = [&](RankContext& context) -> Status {
    for (int round = 1; round <= 2; ++round) {
      context.Sleep(context.rank() * round * kMillisecond);
      if (round == 2 && context.rank() == 2) context.Exit(0);
      context.Meet();
      met_ns[static_cast<std::size_t>(context.rank())] = context.now_ns();
    }
    return OkStatus();
  };
  const SimReport report = SimWorld({.ranks = 3}).Run(body);
  for (const std::int64_t ns : met_ns) EXPECT_EQ(ns, 2 * kMillisecond);
  EXPECT_EQ(report.ranks[0].state, RankState::kHung);
  EXPECT_EQ(report.ranks[0].where, "the other ranks");
  EXPECT_EQ(report.ranks[2].state, RankState::kExited);
}

TEST(SimWorldTest, AProgramThatPollsForEverIsEnded) {
  SimWorld world(
      {.ranks = 1, .silence_ns = std::numeric_limits<std::int64_t>::max(), .most_switches = 1000});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    for (;;) context.Sleep(1);
  });
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.ranks[0].state, RankState::kHung);
}

TEST(SimWorldTest, AWorldIsInterrupted) {
  int questions = 0;
  SimWorld world({.ranks = 2,
                  .silence_ns = std::numeric_limits<std::int64_t>::max(),
                  .interrupted = [&] { return ++questions == 3; }});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    for (;;) context.Sleep(1);
  });
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(questions, 3);
  EXPECT_EQ(report.ranks[1].state, RankState::kHung);
}

TEST(SimWorldTest, AProgramThatNeverWaitsIsInterrupted) {
  int questions = 0;
  SimWorld world({.ranks = 1, .interrupted = [&] { return ++questions == 3; }});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    for (;;) context.HeedInterrupt();
  });
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.ranks[0].state, RankState::kHung);
}

// When each rank ends, after a program with random waits on both sides.
std::vector<std::int64_t> TimesOf(std::uint64_t seed) {
  SimWorld world({.ranks = 4, .seed = seed});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewStream();
    std::vector<float> data(1000, 1);
    for (int i = 0; i < 10; ++i) {
      context.Compute(100 * (context.rank() + i));
      collective::Operation operation = kSum;
      operation.count = 1000;
      LOCKSTEP_RETURN_IF_ERROR(
          communicator->Enqueue(operation, {data.data(), data.data()}, *stream));
      LOCKSTEP_RETURN_IF_ERROR(communicator->Await(*stream, Deadline::AfterSeconds(1)));
    }
    return OkStatus();
  });
  std::vector<std::int64_t> times;
  for (const RankEnd& end : report.ranks) {
    EXPECT_EQ(end.state, RankState::kFinished) << end.message;
    times.push_back(end.at_ns);
  }
  return times;
}

TEST(SimWorldTest, TheSeedDecides) {
  EXPECT_EQ(TimesOf(1), TimesOf(1));
  EXPECT_NE(TimesOf(1), TimesOf(2));
}

TEST(SimWorldTest, AStoppedRankHoldsUpTheOthersUntilItGoesOn) {
  SimWorld world({.ranks = 3, .rules = SimRules::kGloo});
  world.Schedule({SimFault::Kind::kStop, 1, 0});
  world.Schedule({SimFault::Kind::kContinue, 1, 700 * kMillisecond});
  const SimReport report = world.Run([](RankContext& context) { return Blocked(context, kSum); });
  for (const RankEnd& end : report.ranks) {
    EXPECT_EQ(end.state, RankState::kFinished) << end.message;
    EXPECT_GE(end.at_ns, 700 * kMillisecond);
  }
}

TEST(SimWorldTest, CollectivesOfTheSameStreamAreInOrderAndOverlapWithTheCaller) {
  SimWorld world({.ranks = 2, .network = {.alpha_ns = 1e6, .beta_ns_per_byte = 0, .jitter = 0}});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewStream();
    float values[4] = {};
    for (float& value : values) {
      LOCKSTEP_RETURN_IF_ERROR(communicator->Enqueue(kSum, {&value, &value}, *stream));
    }
    EXPECT_EQ(context.now_ns(), 0);  // the caller does not wait
    context.Compute(3 * kMillisecond);
    return communicator->Await(*stream, Deadline::AfterSeconds(1));
  });
  EXPECT_EQ(report.end_ns, 4 * kMillisecond);  // one round of 1 ms each
}

TEST(SimWorldTest, RecordedCollectivesCarryVirtualTime) {
  constexpr std::size_t kCapacity = 64;
  alignas(64) static std::byte memory[2][(kCapacity + 1) * 64];
  ASSERT_GE(sizeof(memory[0]), journal::JournalBytes(kCapacity));
  SimWorld world({.ranks = 2, .network = {.alpha_ns = 5000, .beta_ns_per_byte = 0, .jitter = 0}});
  const SimReport report = world.Run([&](RankContext& context) -> Status {
    journal::JournalWriter journal =
        journal::JournalWriter::Create(memory[context.rank()], kCapacity);
    RecordedCommunicator communicator(context.Connect(), journal, 0);
    const auto stream = context.device().NewStream();
    float value = 1;
    context.Compute(1000 * (context.rank() + 1));
    LOCKSTEP_RETURN_IF_ERROR(communicator.Enqueue(kSum, {&value, &value}, *stream));
    LOCKSTEP_RETURN_IF_ERROR(communicator.Await(*stream, Deadline::AfterSeconds(1)));
    EXPECT_EQ(communicator.last_interval().exit, 7000u);
    return OkStatus();
  });
  ASSERT_EQ(report.ranks[0].state, RankState::kFinished) << report.ranks[0].message;
  std::vector<Ticks> ticks;
  for (const journal::JournalEvent& event :
       journal::JournalReader(memory[0], kCapacity).Newest(10).events) {
    ticks.push_back(event.ticks);
  }
  EXPECT_EQ(ticks, (std::vector<Ticks>{1000, 1000, 7000}));
}

TEST(SimWorldTest, SplitGroupsWaitWhereTheyAre) {
  SimWorld world({.ranks = 4, .rules = SimRules::kMpi});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewInlineStream();
    LOCKSTEP_ASSIGN_OR_RETURN(
        const auto half, communicator->Split(context.rank() / 2, 0, Deadline::AfterSeconds(1)));
    float value = 1;
    LOCKSTEP_RETURN_IF_ERROR(half->Enqueue(kSum, {&value, &value}, *stream));
    EXPECT_EQ(value, 2);
    if (context.rank() == 3) return OkStatus();
    return half->Enqueue(kBarrier, {}, *stream);
  });
  EXPECT_EQ(report.ranks[0].state, RankState::kFinished);
  EXPECT_EQ(report.ranks[1].state, RankState::kFinished);
  EXPECT_EQ(report.ranks[2].state, RankState::kHung);
  EXPECT_GT(report.ranks[2].waiting->communicator, 0);
  EXPECT_EQ(report.ranks[2].waiting->sequence, 1u);
}

TEST(SimWorldTest, AKilledRankClosesItsConnectionsWhenItDies) {
  SimWorld world({.ranks = 3, .rules = SimRules::kGloo});
  world.Schedule({SimFault::Kind::kKill, 2, 300 * kMillisecond});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    if (context.rank() == 2) context.Compute(1000 * kMillisecond);
    return Blocked(context, kSum);
  });
  EXPECT_EQ(report.ranks[2].state, RankState::kKilled);
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_EQ(report.ranks[rank].state, RankState::kFailed);
    EXPECT_GE(report.ranks[rank].at_ns, 300 * kMillisecond);
    EXPECT_LT(report.ranks[rank].at_ns, 301 * kMillisecond);
  }
}

}  // namespace
}  // namespace lockstep::comm::sim
