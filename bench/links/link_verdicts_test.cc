// Links whose ranks waited for a processor: what is proved all the same, and what is left unknown.
#include "bench/links/link_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/links/testing/cluster.h"

namespace lockstep::bench::links {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// Every message of one link, ten in five round trips, waits for the end of a time slice of 3 ms.
TEST(LinkVerdicts, ALinkWhoseRanksWaitedForAProcessorIsNotAccused) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) + (IsBetween(from, to, 1, 2) ? 3e6 : 0);
      },
      kUsualSent,
      [](int rank, int other, int, int) { return rank == 1 && other == 2 ? 30e6 : 2e3; });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(run.links->pairs[3].standing, "too_busy");
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
  EXPECT_THAT(DescribeLinks(run), StartsWith("the hosts are too busy to judge 1 of 6 links: "));
}

// All are so slow by it that a link of 10 ms is nothing special: that is no pass.
TEST(LinkVerdicts, WhereAllRanksWaitedNoLinkIsCalledGood) {
  Cluster cluster(
      kFour, [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 12e6 : 8.8e6; },
      [](int, int, int) { return 30e6; }, [](int, int, int, int) { return 8e6; });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(DescribeLinks(run), StartsWith("the hosts are too busy to judge 6 of 6 links: "));
  for (const auto& pair : run.links->pairs)
    EXPECT_GE(pair.latency_ns, 8.8e6) << "shown all the same";
}

TEST(LinkVerdicts, RoundsWithoutAWaitAreEnoughToJudge) {
  const auto waits = [](int round) { return round > 2; };  // 4 of the 6 that count do not
  Cluster few(kFour, kUsualLatency, kUsualSent,
              [&](int, int, int, int round) { return waits(round) ? 3e6 : 0; });
  EXPECT_EQ(few.Judge().judgement.verdict, verdict::Verdict::kUnknown);
  Cluster enough(kFour, kUsualLatency, kUsualSent,
                 [&](int, int, int, int round) { return waits(round) ? 0 : 3e6; });
  const auto run = enough.Judge();
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kPass);
  EXPECT_EQ(run.links->pairs[0].rounds, 4);
}

// Ranks wait 140 us in each round, which is much of 780 us and little of 4 ms. So only rounds that
// others of the host made slow count, and of one link there are enough of these. It was as fast as
// the others in all the rest: seen of four hosts whose links were well.
TEST(LinkVerdicts, ALinkOfWhichOnlySlowRoundsCountIsNotAccused) {
  Cluster cluster(
      kFour, kUsualLatency, [](int, int, int) { return 780e3; },
      [](int, int, int, int) { return 140e3; }, /*rounds=*/12, [](int, int) { return Kernel(); },
      [](int rank, int other, int round, int) {
        return round > (IsBetween(rank, other, 1, 2) ? 7 : 8) ? 3.4e6 : 0;
      });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
}

// Others of the host slowed two of three messages of each round. One as fast as others' proves that
// the link is well.
TEST(LinkVerdicts, ALinkThatCarriedAFastMessageIsNotAccused) {
  const auto judge = [](int slow_messages, double lost = 0) {
    return Cluster(
               kFour, kUsualLatency, kUsualSent, [](int, int, int, int) { return 20.0; }, kRounds,
               [=](int rank, int other) {
                 return Kernel{60e3, 100, IsBetween(rank, other, 1, 2) ? lost : 0};
               },
               [=](int rank, int other, int, int exchange) {
                 return IsBetween(rank, other, 1, 2) && exchange < slow_messages ? 2e6 : 0;
               },
               /*exchanges_a_round=*/3)
        .Judge();
  };
  const auto run = judge(2);
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kPass);
  EXPECT_THAT(judge(3).judgement.findings, SizeIs(1)) << "no message was fast";
  EXPECT_THAT(judge(2, /*lost=*/1).judgement.findings, SizeIs(1)) << "it loses the others";
}

// 20 ms there and back: a time slice of 1 ms at each end explains nothing of it.
TEST(LinkVerdicts, ALinkThatIsSlowerThanWaitsExplainIsNamed) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return IsBetween(from, to, 1, 2) ? 10e6 : kUsualLatency(from, to, pass);
      },
      [](int from, int to, int pass) {
        return IsBetween(from, to, 1, 2) ? 25e6 : kUsualSent(from, to, pass);
      },
      [](int rank, int other, int, int) { return IsBetween(rank, other, 1, 2) ? 1e6 : 2e3; });
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(1, 2));
}

// How fast these are at least is known: much faster than the slow one.
TEST(LinkVerdicts, ASlowLinkBesideBusyOnesIsNamed) {
  Cluster cluster(
      kFour, [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 10e6 : 1.2e6; },
      [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 25e6 : 4e6; },
      [](int, int, int, int) { return 1e6; });
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_link node2 -> node3 and back"));
  EXPECT_EQ(run.links->pairs[3].standing, "slow_link");
  EXPECT_EQ(run.links->pairs[0].standing, "too_busy");
}

// 15 ms of which waits explain 8 at most, beside links that are faster with all their waits.
TEST(LinkVerdicts, ABusyLinkThatIsSlowWithoutItsWaitsIsNamed) {
  const auto judge = [](double wait_ns) {
    return Cluster(
               kFour,
               [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 15e6 : 1.2e6; },
               [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 90e6 : 30e6; },
               [=](int, int, int, int) { return wait_ns; })
        .Judge();
  };
  const auto run = judge(25e6);
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(1, 2));
  EXPECT_THAT(judge(45e6).judgement.findings, IsEmpty()) << "these explain it";
}

// Ranks that poll, more of them than processors: they wait for one all the time, also while their
// message is on the way. 10 ms there is what the kernels know, too; 3 ms is a time slice.
results::store::Run JudgePolling(double latency_ns, double kernel_round_trip_ns) {
  return Cluster(
             kFour,
             [=](int from, int to, int) { return IsBetween(from, to, 1, 2) ? latency_ns : 16e3; },
             kUsualSent,
             [=](int rank, int other, int, int) {
               return 5 * (IsBetween(rank, other, 1, 2) ? latency_ns : 16e3);
             },
             kRounds,
             [=](int rank, int other) {
               return Kernel{IsBetween(rank, other, 1, 2) ? kernel_round_trip_ns : 30e3, 46, 0};
             })
      .Judge();
}

TEST(LinkVerdicts, ABusyLinkThatIsSlowByItsKernelsTooIsNamed) {
  const auto run = JudgePolling(10.1e6, 20.1e6);
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].message,
              StartsWith("slow_link node2 -> node3 and back: half round trip 10.1 ms or more, "));
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kFail);
  EXPECT_EQ(run.links->pairs[0].standing, "too_busy");
  for (const double round_trip_ns : {30e3, std::nan("")}) {
    const auto waits = JudgePolling(3e6, round_trip_ns);
    EXPECT_THAT(waits.judgement.findings, IsEmpty());
    EXPECT_EQ(waits.judgement.verdict, verdict::Verdict::kUnknown);
  }
}

// One segment in a hundred on one link; what the others lose; of how many.
results::store::Run JudgeLoss(double lost, double others, double segments) {
  return Cluster(
             kFour, kUsualLatency,
             [](int from, int to, int) { return IsBetween(from, to, 1, 2) ? 5e6 : 1e6; },
             [](int, int, int, int) { return 4e6; }, kRounds,
             [=](int rank, int other) {
               return Kernel{60e3, segments, IsBetween(rank, other, 1, 2) ? lost : others};
             })
      .Judge();
}

TEST(LinkVerdicts, ABusyLinkThatLosesSegmentsIsNamed) {
  const auto run = JudgeLoss(1, 0, 100);  // of 6 rounds with 4 iterations each
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(1, 2));
  EXPECT_THAT(JudgeLoss(0, 0, 100).judgement.findings, IsEmpty()) << "slow, and nothing is lost";
  EXPECT_THAT(JudgeLoss(1, 0.5, 100).judgement.findings, IsEmpty()) << "the others lose, too";
  EXPECT_THAT(JudgeLoss(0.1, 0, 100).judgement.findings, IsEmpty()) << "too few to tell";
  EXPECT_THAT(JudgeLoss(1, 0, 1000).judgement.findings, IsEmpty()) << "one of a thousand";
}

// With all its waits it is as fast as those that are known, and these are most.
TEST(LinkVerdicts, ABusyLinkThatLooksUsualBesideKnownOnesIsUsual) {
  const auto judge = [](int last_busy) {
    return Cluster(kFour, kUsualLatency, kUsualSent,
                   [=](int rank, int other, int, int) {
                     return std::max(rank, other) <= last_busy ? 1e6 : 20.0;
                   })
        .Judge();
  };
  EXPECT_EQ(judge(1).judgement.verdict, verdict::Verdict::kPass);
  EXPECT_EQ(judge(2).judgement.verdict, verdict::Verdict::kUnknown) << "three of six are known";
}

// Both ends are fast with others only where that is known.
TEST(LinkVerdicts, ASlowLinkIsNotNamedWhereItsEndsMayBeSlowWithAll) {
  Cluster cluster(
      kFour,
      [](int from, int to, int) {
        if (IsBetween(from, to, 1, 2)) return 50e6;
        return from == 2 || to == 2 ? 20e6 : 50e3;
      },
      kUsualSent,
      [](int rank, int other, int, int) {
        return (rank == 2) != (other == 2) && rank + other != 3 ? 90e6 : 0;
      });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
}

TEST(LinkVerdicts, LinksThatWereBusyAreMeasuredAgainAlone) {
  Cluster cluster(kFour, kUsualLatency, kUsualSent,
                  [](int, int, int pass, int) { return pass == 1 ? 9e6 : 0; });
  EXPECT_THAT(cluster.Retests(), SizeIs(6));
  const auto run = cluster.Judge();
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kPass);
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none of 6 judged is slow"));
}

// Ranks that poll wait for processors as long as their messages are on the way.
Cluster SlowAlone(int rounds) {
  return Cluster(
      kFour,
      [](int from, int to, int pass) {
        return pass == 1 ? 12e6 : IsBetween(from, to, 1, 2) ? 10e6 : 50e3;
      },
      kUsualSent, [](int, int, int pass, int) { return pass == 1 ? 90e6 : 0; }, rounds);
}

TEST(LinkVerdicts, ALinkThatWasBusyIsNamedWhereItIsSlowTwiceAlone) {
  const auto run = SlowAlone(9).Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_link node2 -> node3 and back"));
  EXPECT_THAT(run.judgement.findings[0].message, HasSubstr("twice, both times alone"));
  EXPECT_EQ(run.links->pairs[3].standing, "slow_link");
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
}

// Once is not twice, and no pass either.
TEST(LinkVerdicts, ALinkThatIsSlowOnlyWhereItCouldBeSeenIsUndecided) {
  const auto run = SlowAlone(7).Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(run.links->pairs[3].standing, "too_busy");
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
}

TEST(LinkVerdicts, ASuspectThatCannotBeMeasuredAgainIsUndecided) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) * (IsBetween(from, to, 1, 2) ? 100 : 1);
      },
      kUsualSent, [](int, int, int pass, int) { return pass == 2 ? 30e6 : 0; });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(run.links->pairs[3].standing, "too_busy");
}

// What a kernel does not tell takes no round away.
TEST(LinkVerdicts, UnknownWaitsAreNone) {
  Cluster cluster(kFour, kUsualLatency, kUsualSent,
                  [](int, int, int, int) { return std::nan(""); });
  EXPECT_EQ(cluster.Judge().judgement.verdict, verdict::Verdict::kPass);
  // Nor do they prove anything: a rank that waits makes its link look slow.
  Cluster slow(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) * (IsBetween(from, to, 1, 2) ? 100 : 1);
      },
      kUsualSent, [](int, int, int, int) { return std::nan(""); });
  const auto run = slow.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_FALSE(run.judgement.findings[0].proved);
  EXPECT_THAT(run.judgement.findings[0].message, HasSubstr("not proved: how long ranks waited"));
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
}

}  // namespace
}  // namespace lockstep::bench::links
