// What holds for every judgement.
#include "core/verdict/judge.h"

#include <signal.h>

#include <algorithm>
#include <vector>

#include "core/base/clock.h"
#include "core/verdict/history.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(DescribeInvocation, NamesEverythingThatMatters) {
  JournalEvent event;
  event.nth = 50;
  event.sequence = 101;
  event.count = 256;
  EXPECT_EQ(DescribeInvocation(event),
            "all_reduce 50 (sequence 101 of communicator 0) f32 x 256 sum");
  event.collective = Collective::kBroadcast;
  event.type = DataType::kU8;
  event.root = 3;
  event.communicator = 2;
  EXPECT_EQ(DescribeInvocation(event),
            "broadcast 50 (sequence 101 of communicator 2) u8 x 256 root 3");
  event.collective = Collective::kBarrier;
  EXPECT_EQ(DescribeInvocation(event), "barrier 50 (sequence 101 of communicator 2)");
}

TEST(Judge, NothingKnownIsUnknown) {
  EXPECT_EQ(Judge({}, kDeadline).verdict, Verdict::kUnknown);
  RankEvidence empty;
  empty.seconds_silent = 6;
  const Judgement judgement = JudgeAll({empty});
  EXPECT_EQ(judgement.outcomes[0].outcome, Outcome::kHung);
  EXPECT_EQ(judgement.outcomes[0].where, "before its first journal event");
}

TEST(Judge, TenThousandRanksInLinearTime) {
  const auto ns_for = [](int ranks) {
    std::vector<RankEvidence> evidence;
    for (int rank = 0; rank < ranks; ++rank) {
      const Operation own = AllReduce(1000 + rank);  // every rank another signature
      evidence.push_back(rank % 7 == 3 ? After49(rank).Enters(own).Signalled(SIGKILL)
                                       : After49(rank).Enters(own).Silent(6));
    }
    const std::int64_t start = MonotonicNs();
    const Judgement judgement = JudgeAll(evidence);
    EXPECT_EQ(judgement.findings.size(), 2u);
    return static_cast<double>(MonotonicNs() - start);
  };
  const double few = std::max({ns_for(1000), ns_for(1000), ns_for(1000)});
  // Linear is 10, quadratic 100.
  EXPECT_LT(std::min(ns_for(10'000), ns_for(10'000)) / few, 40);
}

TEST(Names, OutcomesAndVerdicts) {
  EXPECT_EQ(NameOf(Outcome::kFinished), "finished");
  EXPECT_EQ(NameOf(Outcome::kFailed), "failed");
  EXPECT_EQ(NameOf(Outcome::kCrashed), "crashed");
  EXPECT_EQ(NameOf(Outcome::kKilled), "killed");
  EXPECT_EQ(NameOf(Outcome::kStopped), "stopped");
  EXPECT_EQ(NameOf(Outcome::kHung), "hung");
  EXPECT_EQ(NameOf(Outcome::kCorrupt), "corrupt");
  EXPECT_EQ(NameOf(Verdict::kPass), "pass");
  EXPECT_EQ(NameOf(Verdict::kFail), "fail");
  EXPECT_EQ(NameOf(Verdict::kUnknown), "unknown");
}

}  // namespace
}  // namespace lockstep
