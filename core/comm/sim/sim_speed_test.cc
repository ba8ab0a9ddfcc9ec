// Small trials are cheap, and large worlds fit: bounds that a busy machine keeps.
#include <cstdint>
#include <iostream>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/collective/collective.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

#if defined(__SANITIZE_THREAD__)  // makes a change of stack a thousand times as slow
constexpr int kTrials = 20;
constexpr int kRanks = 1'000;
#else
constexpr int kTrials = 1000;
constexpr int kRanks = 100'000;
#endif

TEST(SimSpeedTest, AThousandSmallTrialsASecond) {
  const std::int64_t begin = MonotonicNs();
  for (int trial = 0; trial < kTrials; ++trial) {
    SimWorld world({.ranks = 4, .seed = static_cast<std::uint64_t>(trial)});
    const SimReport report = world.Run([](RankContext& context) -> Status {
      const auto communicator = context.Connect();
      const auto stream = context.device().NewStream();
      std::vector<float> data(64, 1);
      for (int i = 0; i < 20; ++i) {
        const Operation operation = {.collective = Collective::kAllReduce, .count = 64};
        LOCKSTEP_RETURN_IF_ERROR(
            communicator->Enqueue(operation, {data.data(), data.data()}, *stream));
      }
      return communicator->Await(*stream, Deadline::AfterSeconds(1));
    });
    ASSERT_EQ(report.ranks[3].state, RankState::kFinished) << report.ranks[3].message;
  }
  const double seconds = static_cast<double>(MonotonicNs() - begin) / 1e9;
  std::cout << kTrials / seconds << " trials (4 ranks x 20 collectives) a second\n";
  EXPECT_LT(seconds, 10);
}

TEST(SimSpeedTest, AHundredThousandRanks) {
  const std::int64_t begin = MonotonicNs();
  SimWorld world({.ranks = kRanks, .rules = SimRules::kMpi, .stack_bytes = 16 * 1024});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewInlineStream();
    std::int64_t value = context.rank();
    Operation operation = {
        .collective = Collective::kAllReduce, .type = DataType::kI64, .count = 1};
    LOCKSTEP_RETURN_IF_ERROR(communicator->Enqueue(operation, {&value, &value}, *stream));
    if (value != std::int64_t{kRanks} * (kRanks - 1) / 2) return SystemFailed("a wrong sum");
    operation.collective = Collective::kBroadcast;
    LOCKSTEP_RETURN_IF_ERROR(communicator->Enqueue(operation, {&value, &value}, *stream));
    if (context.rank() == kRanks - 777) return OkStatus();  // all others wait for it
    return communicator->Enqueue({.collective = Collective::kBarrier}, {}, *stream);
  });
  const double seconds = static_cast<double>(MonotonicNs() - begin) / 1e9;
  std::cout << kRanks << " ranks x 3 collectives in " << seconds << " s\n";
  std::int64_t hung = 0;
  for (const RankEnd& end : report.ranks) hung += end.state == RankState::kHung ? 1 : 0;
  EXPECT_EQ(hung, kRanks - 1);
  EXPECT_EQ(report.ranks[kRanks - 777].state, RankState::kFinished)
      << report.ranks[kRanks - 777].message;
  EXPECT_LT(seconds, 60);
}

}  // namespace
}  // namespace lockstep
