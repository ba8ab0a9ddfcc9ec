// What the survey makes of samples in which no rank waited: the matrix, slow links, slow hosts.
#include "bench/links/link_survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bench/links/testing/cluster.h"

namespace lockstep::bench::links {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

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
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none of 6 judged is slow"));
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

TEST(LinkSurvey, WhatAnEarlierRepetitionProvedIsNotForgotten) {
  Cluster cluster(
      kFour,
      [](int from, int to, int pass) {
        return kUsualLatency(from, to, pass) * (IsBetween(from, to, 1, 2) ? 100 : 1);
      },
      kUsualSent);
  cluster.Retests();
  cluster.Repeat(kUsualLatency, kUsualSent);
  auto run = cluster.Judge();
  ASSERT_THAT(run.judgement.findings, SizeIs(1));
  EXPECT_THAT(run.judgement.findings[0].culprits, ElementsAre(1, 2));
  EXPECT_THAT(run.judgement.findings[0].message, HasSubstr("; in repetition 1 of 2"));
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kFail);
  EXPECT_EQ(run.links->pairs[3].standing, "usual");  // the matrix is of the last one
}

TEST(LinkSurvey, NoPairMeasuredIsNoPass) {
  Cluster cluster(
      kFour, kUsualLatency, kUsualSent, [](int, int, int, int) { return 20.0; }, /*rounds=*/0);
  const auto run = cluster.Judge();
  EXPECT_EQ(run.judgement.verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(DescribeLinks(run), "no pair was measured");
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
  EXPECT_THAT(DescribeLinks(run), HasSubstr("(1 only once)"));
  EXPECT_LT(std::ranges::count(DescribeLinks(run), ' '), 24);  // with PASS: 25 words
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

TEST(LinkSurvey, TwoHostsHaveNothingToCompare) {
  Cluster cluster({"a", "b"}, kUsualLatency, [](int from, int to, int pass) {
    return kUsualSent(from, to, pass) * (from == 0 ? 100 : 1);
  });
  auto run = cluster.Judge();
  EXPECT_THAT(run.judgement.findings, IsEmpty());
  EXPECT_EQ(run.links->pairs[0].standing, "not_judged");
  EXPECT_THAT(DescribeLinks(run), HasSubstr("none is judged"));
  EXPECT_THAT(DescribeLinks(run), HasSubstr("1 of 1 pairs, no element checked: "));
  run.cases.emplace_back().summary.checked_elements = 1;
  EXPECT_THAT(DescribeLinks(run), HasSubstr("1 of 1 pairs, no wrong element: "));
}

}  // namespace
}  // namespace lockstep::bench::links
