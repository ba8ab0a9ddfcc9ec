// The rounds in which all pairs meet, the cases of a plan, what is refused and what is hashed.
#include "bench/links/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/plan/step_fields.h"

namespace lockstep::bench::links {
namespace {

using testing::HasSubstr;

TEST(RoundRobin, EveryPairMeetsOnceInDisjointRounds) {
  for (int nodes = 2; nodes <= 33; ++nodes) {
    std::set<std::pair<int, int>> met;
    const auto rounds = RoundRobin(nodes);
    EXPECT_EQ(std::ssize(rounds), nodes - 1 + nodes % 2) << nodes;
    for (const auto& pairs : rounds) {
      std::set<int> busy;
      for (const auto& [one, other] : pairs) {
        EXPECT_LT(one, other);
        EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second) << nodes;
        EXPECT_TRUE(met.insert({one, other}).second) << nodes;
      }
      EXPECT_EQ(std::ssize(pairs), nodes / 2);
    }
    EXPECT_EQ(std::ssize(met), nodes * (nodes - 1) / 2);
  }
}

std::map<std::string, LinkExchange> CasesOf(const plan::Plan& plan) {
  std::map<std::string, LinkExchange> cases;
  for (const plan::PlannedCase& planned : plan.cases) {
    cases[planned.name] = plan::StepOf<LinkExchange>(planned);
  }
  return cases;
}

TEST(LinkCases, HasRoundsAllAtOnceAndPairsToMeasureAgain) {
  plan::BenchSpec spec;
  Axes axes;
  axes.bytes = 4096;
  const Result<plan::Plan> plan = Expand(spec, axes, 4, {0, 1, 2, 3});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto cases = CasesOf(*plan);
  EXPECT_EQ(cases.size(), 3u + 1u + 6u);
  EXPECT_EQ(cases.at("links/round:1").pairs.size(), 2u);
  EXPECT_EQ(cases.at("links/all_at_once").everyone, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_TRUE(cases.at("links/retest/0-3").retest);
  EXPECT_FALSE(cases.at("links/round:0").retest);
  EXPECT_GE(plan->recv_buffer_bytes, 4 * 4096 + kPingBytes);
  EXPECT_TRUE(plan->paired);
  EXPECT_TRUE(plan->time_budget_seconds.has_value());
  const Result<plan::Plan> read = plan::PlanFromJson(plan::PlanToJson(*plan));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(CasesOf(*read), cases);
  EXPECT_EQ(plan::PlanToJson(*read), plan::PlanToJson(*plan));
}

TEST(LinkCases, WhatCallsALinkSlowIsInTheHash) {
  const plan::Plan plan = *Expand({}, {}, 3, {0, 1, 2});
  EXPECT_NE(HashOf(plan), HashOf(*Expand({}, {.slow_factor = 2}, 3, {0, 1, 2})));
  EXPECT_EQ(HashOf(plan), HashOf(*Expand({}, {}, 3, {0, 1, 2})));
}

TEST(LinkCases, OnlySomeRanksOrOnePairAtATime) {
  plan::BenchSpec spec;
  Axes axes;
  axes.one_at_a_time = true;
  axes.all_at_once = false;
  const Result<plan::Plan> plan = Expand(spec, axes, 6, {0, 2, 4});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto cases = CasesOf(*plan);
  EXPECT_EQ(cases.size(), 6u);
  EXPECT_EQ(cases.at("links/pair:0-4").pairs.size(), 1u);
  EXPECT_TRUE(cases.contains("links/retest/2-4"));
}

TEST(LinkCases, RefusesInOneLine) {
  plan::BenchSpec spec;
  Axes axes;
  const auto message = [&](int ranks, std::vector<int> nodes) {
    const Result<plan::Plan> plan = Expand(spec, axes, ranks, nodes);
    return plan.ok() ? std::string("ok") : plan.status().message();
  };
  EXPECT_THAT(message(2, {0}), HasSubstr("--per=host"));
  axes.bytes = 0;
  EXPECT_THAT(message(2, {0, 1}), HasSubstr("--bytes 0"));
  axes.bytes = 1;
  spec.backend = "nccl";
  EXPECT_EQ(message(2, {0, 1}), "ok");
  axes.all_at_once = true;
  EXPECT_THAT(message(2, {0, 1}), HasSubstr("--all-at-once=1: nccl"));
  spec.backend = "mpi";
  std::vector<int> many(400);
  for (int i = 0; i < 400; ++i) many[static_cast<std::size_t>(i)] = i;
  EXPECT_THAT(message(400, many), HasSubstr("more than 20000 pairs"));
}

}  // namespace
}  // namespace lockstep::bench::links
