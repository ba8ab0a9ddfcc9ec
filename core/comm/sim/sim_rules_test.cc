// What each set of rules makes of calls that differ, and of peers that go. The expectations for
// Open MPI 4.1.4 and Debian's gloo were observed on the real libraries.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/communicator.h"
#include "core/comm/sim/rules.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

constexpr float kBefore = -9;

// How each rank ends that calls `operation(rank)` once, with send buffers of rank + 1 and receive
// buffers of -9: "done first..last", "hung", "crashed" or the last words of its error. Ranks stay
// until all is over, unless they end by it.
std::string EndsOf(SimRules rules, int ranks,
                   const std::function<collective::Operation(int)>& operation) {
  std::vector<std::string> results(static_cast<std::size_t>(ranks));
  SimWorld world({.ranks = ranks, .rules = rules, .seed = 11});
  const SimReport report = world.Run([&](RankContext& context) -> Status {
    const auto communicator = context.Connect();
    const auto stream = context.device().NewInlineStream();
    const collective::Operation call = operation(context.rank());
    std::string& result = results[static_cast<std::size_t>(context.rank())];
    result = "skipped";
    if (call.count < 0) context.Linger();
    const auto room = static_cast<std::size_t>(call.count * ranks + 8);
    std::vector<float> send(room, static_cast<float>(context.rank() + 1));
    std::vector<float> recv(room, kBefore);
    const Status status = communicator->Enqueue(call, {send.data(), recv.data()}, *stream);
    const std::string text = status.message();
    result =
        status.ok()
            ? fmt::format("done {}..{}", recv[0],
                          recv[static_cast<std::size_t>(std::max<std::int64_t>(call.count - 1, 0))])
            : text.substr(text.rfind(": ") + 2);
    context.Linger();
    return OkStatus();
  });
  std::string all;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const RankState state = report.ranks[rank].state;
    const std::string end(state == RankState::kFinished ? results[rank] : NameOf(state));
    all += (rank > 0 ? " | " : "") + end;
  }
  return all;
}

collective::Operation Of(collective::Collective collective, std::int64_t count, int root = 0) {
  return {.collective = collective, .count = count, .root = root};
}

// All call `collective`, the last one with `last` elements, the others with `others`.
std::string Counts(SimRules rules, int ranks, collective::Collective collective, int others,
                   int last) {
  return EndsOf(rules, ranks,
                [=](int rank) { return Of(collective, rank == ranks - 1 ? last : others); });
}

constexpr auto kAllReduce = collective::Collective::kAllReduce;
constexpr auto kBroadcast = collective::Collective::kBroadcast;

TEST(MpiRulesTest, CountsOfASmallAllReduce) {
  EXPECT_EQ(Counts(SimRules::kMpi, 2, kAllReduce, 1, 2), "message truncated | done 3..-7");
  EXPECT_EQ(Counts(SimRules::kMpi, 2, kAllReduce, 2, 1), "done 3..-8 | message truncated");
  EXPECT_EQ(Counts(SimRules::kMpi, 2, kAllReduce, 100, 1000), "message truncated | done 3..-7");
  EXPECT_EQ(Counts(SimRules::kMpi, 3, kAllReduce, 1, 2), "hung | message truncated | done 6..-6");
  EXPECT_EQ(Counts(SimRules::kMpi, 3, kAllReduce, 2, 1),
            "done 6..4 | done 6..4 | message truncated");
}

TEST(MpiRulesTest, CountsOfALargeAllReduce) {
  EXPECT_EQ(Counts(SimRules::kMpi, 2, kAllReduce, 100'000, 200'000), "message truncated | hung");
  EXPECT_EQ(Counts(SimRules::kMpi, 2, kAllReduce, 200'000, 100'000), "hung | message truncated");
  EXPECT_EQ(Counts(SimRules::kMpi, 3, kAllReduce, 100'000, 200'000),
            "message truncated | hung | hung");
  EXPECT_EQ(Counts(SimRules::kMpi, 3, kAllReduce, 200'000, 100'000),
            "hung | hung | message truncated");
}

TEST(MpiRulesTest, CountsOfOthers) {
  for (const int scale : {1, 100'000}) {
    EXPECT_EQ(Counts(SimRules::kMpi, 2, kBroadcast, scale, 2 * scale), "done 1..1 | done 1..-9");
    EXPECT_EQ(Counts(SimRules::kMpi, 2, kBroadcast, 2 * scale, scale),
              "done 1..1 | message truncated");
    EXPECT_EQ(Counts(SimRules::kMpi, 3, kBroadcast, 2 * scale, scale),
              "done 1..1 | done 1..1 | message truncated");
  }
  EXPECT_EQ(Counts(SimRules::kMpi, 2, collective::Collective::kReduce, 1, 2),
            "message truncated | done -9..-9");
  EXPECT_EQ(Counts(SimRules::kMpi, 2, collective::Collective::kReduce, 2, 1),
            "done 3..-8 | done -9..-9");
  EXPECT_EQ(Counts(SimRules::kMpi, 2, collective::Collective::kAllGather, 1, 2),
            "message truncated | done 1..-9");
}

TEST(MpiRulesTest, AnotherReductionIsSilentlyWrong) {
  EXPECT_EQ(EndsOf(SimRules::kMpi, 4,
                   [](int rank) {
                     collective::Operation operation = Of(kAllReduce, 2);
                     if (rank == 3) operation.reduction = collective::Reduction::kMax;
                     return operation;
                   }),
            "done 10..10 | done 7..7 | done 10..10 | done 4..4");
}

TEST(MpiRulesTest, ASkippedBroadcastHurtsNobodyWhenSmall) {
  const auto skips = [](int ranks, int skipper, int count) {
    return EndsOf(SimRules::kMpi, ranks,
                  [=](int rank) { return Of(kBroadcast, rank == skipper ? -1 : count); });
  };
  EXPECT_EQ(skips(4, 3, 2), "done 1..1 | done 1..1 | done 1..1 | skipped");
  EXPECT_EQ(skips(4, 3, 400'000), "done 1..1 | done 1..1 | hung | skipped");
  EXPECT_EQ(skips(2, 1, 400'000), "hung | skipped");
  EXPECT_EQ(skips(2, 0, 2), "skipped | hung");
}

TEST(MpiRulesTest, AnotherRootSmallAndLarge) {
  const auto roots = [](int count) {
    return EndsOf(SimRules::kMpi, 2, [=](int rank) { return Of(kBroadcast, count, rank); });
  };
  EXPECT_EQ(roots(2), "done 1..1 | done 2..2");
  EXPECT_EQ(roots(400'000), "hung | hung");
}

TEST(MpiRulesTest, KindsNeverMeet) {
  EXPECT_EQ(EndsOf(SimRules::kMpi, 2,
                   [](int rank) {
                     return rank == 0 ? Of(kAllReduce, 1) : Of(collective::Collective::kBarrier, 0);
                   }),
            "hung | hung");
}

TEST(GlooRulesTest, CountsOfAnAllReduce) {
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kAllReduce, 1, 2), "hung | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kAllReduce, 2, 1), "hung | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kAllReduce, 2, 3), "done 3..3 | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kAllReduce, 100, 1000),
            "crashed | Connection closed by peer (rank 0)");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kAllReduce, 200'000, 100'000),
            "Connection closed by peer (rank 1) | crashed");
  EXPECT_EQ(Counts(SimRules::kGloo, 3, kAllReduce, 1, 2), "done 6..6 | done 3..3 | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 3, kAllReduce, 2, 1), "hung | hung | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 3, kAllReduce, 2, 3), "done 6..6 | done 9..6 | hung");
}

TEST(GlooRulesTest, CountsOfOthers) {
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kBroadcast, 1, 2), "done 1..1 | done 1..-9");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, kBroadcast, 2, 1), "done 1..1 | crashed");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, collective::Collective::kAllGather, 1, 2),
            "crashed | Connection closed by peer (rank 0)");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, collective::Collective::kReduce, 1, 2), "done 3..3 | hung");
  EXPECT_EQ(Counts(SimRules::kGloo, 2, collective::Collective::kReduce, 2, 1),
            "hung | done -9..-9");
}

TEST(GlooRulesTest, KindsAndRootsNeverMeet) {
  EXPECT_EQ(EndsOf(SimRules::kGloo, 3,
                   [](int rank) {
                     return rank < 2 ? Of(kAllReduce, 2) : Of(collective::Collective::kBarrier, 0);
                   }),
            "hung | hung | hung");
  EXPECT_EQ(
      EndsOf(SimRules::kGloo, 3, [](int rank) { return Of(kBroadcast, 2, rank == 2 ? 2 : 0); }),
      "hung | done 1..1 | hung");
}

TEST(GlooRulesTest, ASendWaitsForItsReceive) {
  EXPECT_EQ(EndsOf(SimRules::kGloo, 2, [](int rank) { return Of(kBroadcast, rank == 1 ? -1 : 2); }),
            "hung | skipped");
}

// Who sends to the last rank waits for it, and nobody else does.
TEST(GlooRulesTest, ABroadcastClearsTheHighestBit) {
  const auto last_skips = [](int ranks, int root) {
    return EndsOf(SimRules::kGloo, ranks, [=](int rank) {
      return Of(kBroadcast, (rank - root + ranks) % ranks == ranks - 1 ? -1 : 2, root);
    });
  };
  EXPECT_EQ(last_skips(4, 0), "done 1..1 | hung | done 1..1 | skipped");
  EXPECT_EQ(last_skips(4, 1), "skipped | done 2..2 | hung | done 2..2");
  EXPECT_EQ(last_skips(6, 0), "done 1..1 | hung | done 1..1 | done 1..1 | done 1..1 | skipped");
  EXPECT_EQ(last_skips(7, 0),
            "done 1..1 | done 1..1 | hung | done 1..1 | done 1..1 | done 1..1 | skipped");
}

TEST(NcclRulesTest, CountsWithinALineAreSilentlyWrongAndBeyondItHang) {
  EXPECT_EQ(Counts(SimRules::kNccl, 2, kAllReduce, 1, 2), "done 3..3 | done 3..-7");
  EXPECT_EQ(Counts(SimRules::kNccl, 2, kAllReduce, 2, 3), "done 3..3 | hung");
  EXPECT_EQ(Counts(SimRules::kNccl, 3, kAllReduce, 100'000, 100), "hung | hung | done 6..6");
}

TEST(NcclRulesTest, ABarrierIsAnAllReduceOfOneFloat) {
  EXPECT_EQ(EndsOf(SimRules::kNccl, 2,
                   [](int rank) {
                     return rank == 0 ? Of(kAllReduce, 1) : Of(collective::Collective::kBarrier, 0);
                   }),
            "done 1..1 | done -9..-9");
}

TEST(NcclRulesTest, KindsThatDifferAreNeverHeardOf) {
  EXPECT_EQ(EndsOf(SimRules::kNccl, 2,
                   [](int rank) {
                     return rank == 0 ? Of(kAllReduce, 4)
                                      : Of(collective::Collective::kAllGather, 4);
                   }),
            "hung | hung");
}

// Two ranks of the three, where rank 2 leaves without its call.
TEST(RulesTest, APeerThatGoesIsHeardOfUnderGlooOnly) {
  for (const SimRules rules : {SimRules::kNccl, SimRules::kMpi, SimRules::kGloo}) {
    SimWorld world({.ranks = 3, .rules = rules});
    const SimReport report = world.Run([](RankContext& context) -> Status {
      const auto communicator = context.Connect();
      const auto stream = context.device().NewInlineStream();
      if (context.rank() == 2) context.Exit(0);
      return communicator->Enqueue(Of(collective::Collective::kBarrier, 0), {}, *stream);
    });
    for (const int rank : {0, 1}) {
      const RankEnd& end = report.ranks[static_cast<std::size_t>(rank)];
      if (rules == SimRules::kGloo) {
        EXPECT_EQ(end.state, RankState::kFailed);
        EXPECT_EQ(end.message, "sim_gloo: barrier: Connection closed by peer (rank 2)");
      } else {
        EXPECT_EQ(end.state, RankState::kHung);
        ASSERT_TRUE(end.waiting.has_value());
        EXPECT_EQ(end.waiting->operation.collective, collective::Collective::kBarrier);
      }
    }
    EXPECT_EQ(report.ranks[2].state, RankState::kExited);
  }
}

TEST(RulesTest, NamesAreReadBack) {
  for (const SimRules rules : {SimRules::kNccl, SimRules::kMpi, SimRules::kGloo}) {
    EXPECT_EQ(*ParseSimRules("--sim-rules", NameOf(rules)), rules);
  }
  EXPECT_EQ(ParseSimRules("--sim-rules", "upc").status().message(),
            "--sim-rules: there are no rules 'upc'; choose nccl, mpi or gloo");
}

}  // namespace
}  // namespace lockstep::comm::sim
