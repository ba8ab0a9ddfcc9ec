// Many trials one after the other, and large worlds: they fit and come out right. How fast they are
// is a matter of scripts/benchmarks.
#include <cstdint>
#include <vector>

#include "core/base/deadline.h"
#include "core/collective/collective.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

#if defined(__SANITIZE_THREAD__)  // makes a change of stack a thousand times as slow
constexpr int kTrials = 20;
constexpr int kRanks = 1'000;
#else
constexpr int kTrials = 1000;
constexpr int kRanks = 100'000;
#endif

TEST(SimScaleTest, AThousandSmallTrials) {
  for (int trial = 0; trial < kTrials; ++trial) {
    SimWorld world({.ranks = 4, .seed = static_cast<std::uint64_t>(trial)});
    const SimReport report = world.Run([](RankContext& context) -> Status {
      const auto communicator = context.Connect();
      const auto stream = context.device().NewStream();
      std::vector<float> data(64, 1);
      for (int i = 0; i < 20; ++i) {
        const collective::Operation operation = {.collective = collective::Collective::kAllReduce,
                                                 .count = 64};
        LOCKSTEP_RETURN_IF_ERROR(
            communicator->Enqueue(operation, {data.data(), data.data()}, *stream));
      }
      return communicator->Await(*stream, Deadline::AfterSeconds(1));
    });
    ASSERT_EQ(report.ranks[3].state, RankState::kFinished) << report.ranks[3].message;
  }
}

TEST(SimScaleTest, AHundredThousandRanks) {
  SimWorld world({.ranks = kRanks, .rules = SimRules::kMpi, .stack_bytes = 16 * 1024});
  const SimReport report = world.Run([](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewInlineStream();
    std::int64_t value = context.rank();
    collective::Operation operation = {.collective = collective::Collective::kAllReduce,
                                       .type = collective::DataType::kI64,
                                       .count = 1};
    LOCKSTEP_RETURN_IF_ERROR(communicator->Enqueue(operation, {&value, &value}, *stream));
    if (value != std::int64_t{kRanks} * (kRanks - 1) / 2) return SystemFailed("a wrong sum");
    operation.collective = collective::Collective::kBroadcast;
    LOCKSTEP_RETURN_IF_ERROR(communicator->Enqueue(operation, {&value, &value}, *stream));
    if (context.rank() == kRanks - 777) return OkStatus();  // all others wait for it
    return communicator->Enqueue({.collective = collective::Collective::kBarrier}, {}, *stream);
  });
  std::int64_t hung = 0;
  for (const RankEnd& end : report.ranks) hung += end.state == RankState::kHung ? 1 : 0;
  EXPECT_EQ(hung, kRanks - 1);
  EXPECT_EQ(report.ranks[kRanks - 777].state, RankState::kFinished)
      << report.ranks[kRanks - 777].message;
}

}  // namespace
}  // namespace lockstep::comm::sim
