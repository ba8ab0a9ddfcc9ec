// What holds for every judgement.
#include "core/verdict/judge.h"

#include <signal.h>

#include <algorithm>
#include <vector>

#include "core/base/random.h"
#include "core/verdict/finders/find.h"
#include "core/verdict/testing/history.h"
#include "core/verdict/trace.h"
#include "core/verdict/wording.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

TEST(DescribeInvocation, NamesEverythingThatMatters) {
  journal::JournalEvent event;
  event.nth = 50;
  event.sequence = 101;
  event.count = 256;
  EXPECT_EQ(DescribeInvocation(event),
            "all_reduce 50 (sequence 101 of communicator 0) f32 x 256 sum");
  event.collective = collective::Collective::kBroadcast;
  event.type = collective::DataType::kU8;
  event.root = 3;
  event.communicator = 2;
  EXPECT_EQ(DescribeInvocation(event),
            "broadcast 50 (sequence 101 of communicator 2) u8 x 256 root 3");
  event.collective = collective::Collective::kBarrier;
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

TEST(Judge, TenThousandRanksWithTenThousandSignatures) {
  std::vector<RankEvidence> evidence;
  for (int rank = 0; rank < 10'000; ++rank) {
    const collective::Operation own = AllReduce(1000 + rank);
    evidence.push_back(rank % 7 == 3 ? After49(rank).Enters(own).Signalled(SIGKILL)
                                     : After49(rank).Enters(own).Silent(6));
  }
  EXPECT_EQ(JudgeAll(evidence).findings.size(), 2u);
}

// Histories come from files, too: whatever they hold, there is an answer.
TEST(Judge, AnyHistoryIsJudged) {
  constexpr std::uint64_t kSeed = 4711;
  Random random(kSeed);
  const auto event = [&](std::uint64_t index) {
    journal::JournalEvent one;
    one.index = index;
    one.ticks = random.Below(1000);
    one.kind = static_cast<journal::EventKind>(1 + random.Below(10));
    one.phase = static_cast<journal::Phase>(random.Below(14));
    one.sequence = random.Below(5);
    one.communicator = static_cast<std::uint16_t>(random.Below(3));
    one.collective = static_cast<collective::Collective>(random.Below(8));
    one.count = static_cast<std::int64_t>(random.Below(2));
    one.case_index = static_cast<std::uint32_t>(random.Below(2));
    one.root = static_cast<std::int32_t>(random.Below(2));
    if (random.Below(2) == 0) one.value = static_cast<std::int64_t>(random.Next());
    return one;
  };
  Setting setting = {.deadline_seconds = 5};
  setting.groups = {
      {1, "some", {0, 2, 99}}, {2, "left", {0, 1}}, {2, "right", {2, 3}}, {1, "", {}}};
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<RankEvidence> evidence(random.Below(5));
    for (std::size_t i = 0; i < evidence.size(); ++i) {
      evidence[i].rank = static_cast<int>(i);
      evidence[i].state = static_cast<ProcessState>(random.Below(5));
      evidence[i].idle = random.Below(5) == 0;
      evidence[i].seconds_silent = static_cast<double>(random.Below(10));
      evidence[i].journal.missed = random.Below(2);
      for (std::uint64_t n = random.Below(12); n > 0; --n) {
        evidence[i].journal.events.push_back(event(20 - n));
      }
    }
    setting.one_stream = random.Below(2) == 0;
    setting.backend = std::vector<const char*>{"", "nccl", "mpi", "gloo"}[random.Below(4)];
    const Judgement judgement = Judge(evidence, setting);
    ASSERT_EQ(judgement.outcomes.size(), evidence.size()) << "seed " << kSeed << ", " << trial;
    ExpectReadable(judgement);
    FormatTrace(TraceOf(evidence, setting, judgement));
    finders::FindSlowRanks(evidence);
  }
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

std::string HeadlineOf(const std::vector<RankEvidence>& evidence) {
  const Judgement judgement = JudgeAll(evidence);
  return judgement.findings.empty() ? "" : judgement.findings.front().headline.text();
}

TEST(Headlines, SayWhoWhereWhatAndWhomItKeeps) {
  EXPECT_EQ(HeadlineOf({At50(0), At50(1).Signalled(SIGKILL).Of("node2", 4711), At50(2)}),
            "rank 1 (host node2, pid 4711) was killed by SIGKILL in all_reduce 50; ranks 0 and 2 "
            "wait for it");
  EXPECT_EQ(HeadlineOf({At50(0), At50(1).Signalled(SIGKILL).Of("node2", 4711),
                        At50(2).Signalled(SIGKILL).Of("node2", 4712)}),
            "ranks 1 and 2 (host node2) died by a signal, rank 1 in all_reduce 50; rank 0 waits "
            "for them");
  EXPECT_EQ(
      HeadlineOf({At50(0).Silent(6), After49(1)
                                         .In(journal::Phase::kCompute)
                                         .Silent(6)
                                         .Of("node2", 4711)
                                         .Asleep("asleep in pause [do_sys]; stack: pause@libc")}),
      "rank 1 (host node2, pid 4711) has not entered all_reduce 50: asleep in pause(), silent 6.0 "
      "s; rank "
      "0 waits for it");
}

TEST(Headlines, ABucketIsNamedAsTheProgramKnowsIt) {
  const auto in_bucket = [](int rank) {
    return History(rank).Iteration(12).As(journal::Purpose::kBucket, 3).Enters(AllReduce());
  };
  EXPECT_EQ(HeadlineOf({in_bucket(0).Silent(6),
                        in_bucket(1).Silent(6).Of("node2", 4711).Asleep("asleep in pause")}),
            "rank 1 (host node2, pid 4711) hangs in all_reduce of bucket 3 of iteration 12: asleep "
            "in pause(); rank 0 waits for it");
  EXPECT_EQ(HeadlineOf({At50(0), After49(1).Enters(AllReduce(8)).Of("node2", 4711)}),
            "rank 1 (host node2, pid 4711) calls all_reduce 50 with f32 x 8 sum, rank 0 with f32 x "
            "256 sum");
}

TEST(Judge, WhoIsStoppedForAMomentIsNotSilent) {
  for (const History& busy : {After49(1), After49(1).Idle()}) {
    const auto all = [&busy](double silent) {
      return AllSilent({At50(0).Silent(6), History(busy).Stopped(SIGSTOP).Silent(silent)},
                       kDeadline);
    };
    EXPECT_FALSE(all(1));
    EXPECT_TRUE(all(6));
  }
}

TEST(Judge, HistoriesOfWhichTheNewestEventsAreKeptAreNotWhole) {
  // Rank 1 slept between its two calls: its window has but the newest, which it left already.
  const auto slept = [](int rank) {
    History history = History(rank).Does(AllReduce());
    for (int i = 0; i < 1100; ++i) history.In(journal::Phase::kCompute);
    return history.Does(AllReduce()).Leaves(0).Newest(1024);
  };
  EXPECT_THAT(JudgeAll({History(0).Does(AllReduce()).Enters(AllReduce()), slept(1)}).findings,
              ::testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::verdict
