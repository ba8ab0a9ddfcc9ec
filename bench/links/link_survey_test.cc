// Samples written out, as workers leave them, and what the survey makes of them.
#include "bench/links/link_survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/protocol.h"

namespace lockstep::bench::links {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr int kRounds = 7;  // the first calibrates

// Times of a message from rank to rank, ns; `pass` is 1 or 2.
using Cost = std::function<double(int from, int to, int pass)>;
// What a rank waited for a processor while it met another one, ns.
using Wait = std::function<double(int rank, int other, int pass, int round)>;

class Cluster {
 public:
  Cluster(
      std::vector<std::string> hosts, Cost latency, Cost sent,
      Wait wait = [](int, int, int, int) { return 20.0; }, int rounds = kRounds)
      : rounds_(rounds),
        hosts_(std::move(hosts)),
        latency_(std::move(latency)),
        sent_(std::move(sent)),
        wait_(std::move(wait)) {
    std::vector<int> all(hosts_.size());
    std::iota(all.begin(), all.end(), 0);
    plan_ = *Expand({}, {}, static_cast<int>(hosts_.size()), all);
    exchanges_ = ExchangesOf(plan_);
    book_.emplace(static_cast<int>(hosts_.size()), plan_.cases.size(), TickScale{});
    for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
      if (!LinksOf(i).retest) Measure(i, 1);
    }
  }

  LinkSurvey Survey(bool within_hosts = false) const {
    return LinkSurvey(plan_, {hosts_, within_hosts});
  }
  std::vector<std::string> Retests(bool within_hosts = false) {
    std::vector<std::string> names;
    for (const std::size_t i : Survey(within_hosts).Retests(*book_, 0)) {
      Measure(i, 2);
      names.push_back(plan_.cases[i].name);
    }
    return names;
  }
  results::store::Run Judge(bool within_hosts = false) {
    Retests(within_hosts);
    results::store::Run run;
    run.judgement.verdict = verdict::Verdict::kPass;
    Survey(within_hosts).AddTo(*book_, 0, run);
    return run;
  }

 private:
  const LinkExchange& LinksOf(std::size_t i) const { return exchanges_[i]; }
  void Leave(int rank, std::size_t i, int round, std::vector<double> parts) {
    std::string bytes;
    const auto index = static_cast<std::uint32_t>(i);
    AppendTo(bytes, measure::SampleRecord{index, static_cast<std::uint32_t>(round), 1, 2});
    AppendTo(bytes, measure::PartsRecord{index, std::move(parts)});
    book_->Add(rank, bytes);
  }
  void Measure(std::size_t i, int pass) {
    const LinkExchange& links = LinksOf(i);
    for (int round = 0; round < rounds_; ++round) {
      const double noise = round == 0 ? 50 : 1 + 0.02 * round;
      for (const int rank : links.everyone) Leave(rank, i, round, {4e6 * noise});
      for (const auto& [a, b] : links.pairs) {
        const double wait_a = wait_(a, b, pass, round), wait_b = wait_(b, a, pass, round);
        // One iteration that a leads, and one that b leads.
        Leave(a, i, round,
              {latency_(a, b, pass) * noise, sent_(a, b, pass) * noise, wait_a, wait_a});
        Leave(b, i, round, {0, 0, wait_b, wait_b});
        Leave(a, i, round, {0, 0, wait_a, wait_a});
        Leave(b, i, round,
              {latency_(b, a, pass) * noise, sent_(b, a, pass) * noise, wait_b, wait_b});
      }
    }
  }

  int rounds_;
  std::vector<std::string> hosts_;
  Cost latency_, sent_;
  Wait wait_;
  plan::Plan plan_;
  std::vector<LinkExchange> exchanges_;
  std::optional<measure::SampleBook> book_;
};

bool IsBetween(int from, int to, int a, int b) {
  return (from == a && to == b) || (from == b && to == a);
}
const Cost kUsualLatency = [](int from, int to, int) { return 50e3 + 100 * (from + to); };
const Cost kUsualSent = [](int from, int to, int) { return 1e6 + 1000 * (from + 2 * to); };
const std::vector<std::string> kFour = {"node1", "node2", "node3", "node4"};

TEST(LinkSurvey, ACleanClusterHasAMatrixAndNoFinding) {
  Cluster cluster(kFour, kUsualLatency, kUsualSent);
  EXPECT_THAT(cluster.Retests(), IsEmpty());
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kPass);
  ASSERT_THAT(run.links->pairs, SizeIs(6));
  const results::store::LinkPair& pair = run.links->pairs[1];
  EXPECT_EQ(std::pair(pair.a, pair.b), std::pair(0, 2));
  EXPECT_EQ(pair.standing, "usual");
  EXPECT_EQ(pair.rounds, kRounds - 1);
  EXPECT_NEAR(pair.latency_ns, 50.2e3 * 1.07, 1);
  EXPECT_NEAR(pair.forward_gbps, (1 << 20) / (1.004e6 * 1.07), 1e-6);
  EXPECT_TRUE(std::isnan(pair.retest_latency_ns));
  ASSERT_THAT(run.links->all_at_once_gbps, SizeIs(4));
  EXPECT_NEAR(run.links->all_at_once_gbps[3], 3 * (1 << 20) / (4e6 * 1.07), 1e-6);
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none of 6 judged ones is slow"));
}

TEST(LinkSurvey, ASlowLinkIsMeasuredAgainAndNamed) {
  const auto slow = [](const Cost& usual) {
    return [usual](int from, int to, int pass) {
      return usual(from, to, pass) * (IsBetween(from, to, 1, 2) ? 100 : 1);
    };
  };
  Cluster cluster(kFour, slow(kUsualLatency), slow(kUsualSent));
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  const verdict::Finding& finding = run.judgement.findings.front();
  EXPECT_EQ(finding.cause, verdict::Cause::kSlowLink);
  EXPECT_THAT(finding.culprits, ElementsAre(1, 2));
  EXPECT_THAT(finding.message, StartsWith("slow_link node2 -> node3 and back: half round trip 5."));
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kFail);
  EXPECT_EQ(run.links->pairs[3].standing, "slow_link");
  EXPECT_FALSE(std::isnan(run.links->pairs[3].retest_latency_ns));
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
}

TEST(LinkSurvey, ALinkThatIsSlowInOneDirectionIsNamedInThatDirection) {
  Cluster cluster(kFour, kUsualLatency, [](int from, int to, int pass) {
    return kUsualSent(from, to, pass) * (from == 3 && to == 0 ? 6 : 1);
  });
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_link node4 -> node1: "));
}

TEST(LinkSurvey, ASlowHostIsToldFromASlowLink) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) * (from == 2 || to == 2 ? 20 : 1);
      },
      kUsualSent);
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_EQ(run.judgement.findings[0].cause, verdict::Cause::kSlowHost);
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(2));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_host node3: slow with 3 of 3"));
  EXPECT_EQ(run.links->pairs[1].standing, "slow_host");
}

TEST(LinkSurvey, WhatIsNotSlowAgainIsUnsteadyAndNoFinding) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) * (pass == 1 && IsBetween(from, to, 0, 1) ? 50 : 1);
      },
      kUsualSent);
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.links->pairs[0].standing, "unsteady");
  EXPECT_THAT(DescribeLinks(run), HasSubstr("1 looked so, but not when measured again"));
}

TEST(LinkSurvey, RanksOfAHostAreJudgedTogetherAndItsOwnPairsOnlyOnGpus) {
  const std::vector<std::string> hosts = {"a", "a", "b", "b", "c", "c"};
  const Cost latency = [](int from, int to, int pass) {
    if (from / 2 == to / 2) return from == 0 || to == 0 ? 200e3 : 1e3;  // never judged here
    return kUsualLatency(from, to, pass) * (from / 2 + to / 2 == 3 ? 30 : 1);
  };
  Cluster cluster(hosts, latency, kUsualSent);
  const auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_link b -> c and back"));
  EXPECT_EQ(run.links->pairs[0].standing, "not_judged");

  const Cost gpus = [](int from, int to, int) { return IsBetween(from, to, 1, 3) ? 9e3 : 1e3; };
  Cluster host({"x", "x", "x", "x"}, gpus, kUsualSent);
  EXPECT_THAT(host.Judge(false).judgement.findings, IsEmpty());
  const auto within = host.Judge(true);
  ASSERT_THAT(within.judgement.findings, SizeIs(1));
  EXPECT_THAT(within.judgement.findings[0].message, StartsWith("slow_link rank 1 -> rank 3"));
}

// Every message of one link, ten in five round trips, waits for the end of a time slice of 3 ms.
TEST(LinkSurvey, ALinkWhoseRanksWaitedForAProcessorIsNotAccused) {
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
TEST(LinkSurvey, WhereAllRanksWaitedNoLinkIsCalledGood) {
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

TEST(LinkSurvey, RoundsWithoutAWaitAreEnoughToJudge) {
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

// 20 ms there and back: a time slice of 1 ms at each end explains nothing of it.
TEST(LinkSurvey, ALinkThatIsSlowerThanWaitsExplainIsNamed) {
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
TEST(LinkSurvey, ASlowLinkBesideBusyOnesIsNamed) {
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
TEST(LinkSurvey, ABusyLinkThatIsSlowWithoutItsWaitsIsNamed) {
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

// Both ends are fast with others only where that is known.
TEST(LinkSurvey, ASlowLinkIsNotNamedWhereItsEndsMayBeSlowWithAll) {
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

TEST(LinkSurvey, LinksThatWereBusyAreMeasuredAgainAlone) {
  Cluster cluster(kFour, kUsualLatency, kUsualSent,
                  [](int, int, int pass, int) { return pass == 1 ? 9e6 : 0; });
  EXPECT_THAT(cluster.Retests(), SizeIs(6));
  const auto run = cluster.Judge();
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kPass);
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none of 6 judged ones is slow"));
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

TEST(LinkSurvey, ALinkThatWasBusyIsNamedWhereItIsSlowTwiceAlone) {
  const auto run = SlowAlone(9).Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].message, StartsWith("slow_link node2 -> node3 and back"));
  EXPECT_THAT(run.judgement.findings[0].message, HasSubstr("twice, both times alone"));
  EXPECT_EQ(run.links->pairs[3].standing, "slow_link");
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
}

// Once is not twice, and no pass either.
TEST(LinkSurvey, ALinkThatIsSlowOnlyWhereItCouldBeSeenIsUndecided) {
  const auto run = SlowAlone(7).Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(run.links->pairs[3].standing, "too_busy");
  EXPECT_EQ(run.links->pairs[0].standing, "usual");
}

TEST(LinkSurvey, ASuspectThatCannotBeMeasuredAgainIsUndecided) {
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
TEST(LinkSurvey, UnknownWaitsAreNone) {
  Cluster cluster(kFour, kUsualLatency, kUsualSent,
                  [](int, int, int, int) { return std::nan(""); });
  EXPECT_EQ(cluster.Judge().judgement.verdict, verdict::Verdict::kPass);
}

TEST(LinkSurvey, TwoHostsHaveNothingToCompare) {
  Cluster cluster({"a", "b"}, kUsualLatency, [](int from, int to, int pass) {
    return kUsualSent(from, to, pass) * (from == 0 ? 100 : 1);
  });
  const auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.links->pairs[0].standing, "not_judged");
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none is judged"));
}

}  // namespace
}  // namespace lockstep::bench::links
