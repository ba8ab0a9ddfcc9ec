// Which cases of two sides are one: by name, backend, ranks and work, unless asked to compare
// across.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "results/compare/compare.h"
#include "results/compare/planned.h"
#include "results/compare/testing/literal_sides.h"

namespace lockstep::results::compare {
namespace {

TEST(CaseGroupsTest, BackendsAreApartUnlessAskedFor) {
  Sides sides = SidesOf(8, 100, 150);
  for (Launch& launch : sides.candidate) launch.cases.front().backend = "gloo";
  const LaunchComparison apart = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(apart.Count(Change::kMissing), 2u);
  EXPECT_NE(apart.cases[0].resolve.find("--across=backend"), std::string::npos);
  CompareOptions across;
  across.across = {"backend"};
  EXPECT_EQ(OnlyCase(sides, across).change, Change::kSlower);
}

TEST(CaseGroupsTest, ACaseIsMissingOnlyInLaunchesOfItsPlan) {
  Sides sides = SidesOf(8, 100, 100);
  for (const char* plan : {"gloo", "other step"}) {
    Sides more = SidesOf(8, 100, 100);
    for (const auto& [from, to] :
         {std::pair(&more.base, &sides.base), std::pair(&more.candidate, &sides.candidate)}) {
      for (Launch& launch : *from) {
        launch.facts = {{"plan", plan}};
        (plan == std::string("gloo") ? launch.cases[0].backend : launch.cases[0].name) = plan;
        to->push_back(launch);
      }
    }
  }
  const LaunchComparison whole = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(whole.exit_code, ExitCode::kPass) << whole.headline;
  sides.candidate.back().cases.clear();
  const LaunchComparison incomplete = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(incomplete.Count(Change::kAmbiguous), 1u);
  EXPECT_EQ(incomplete.cases[0].why, "1 of 8 launches of the candidate have no time of it");
}

TEST(CaseGroupsTest, WhatAGraphReplaysIsAnotherCaseUnlessAskedFor) {
  Sides sides = SidesOf(8, 100, 80);
  for (Launch& launch : sides.base) launch.cases.front().name = "ddp_step/small/no_timeline";
  for (Launch& launch : sides.candidate) launch.cases.front().name = "ddp_step/small/cuda_graph";
  EXPECT_EQ(Compare(sides.base, sides.candidate, {}).Count(Change::kMissing), 2u);
  CompareOptions across;
  across.across = {"cuda_graph"};
  EXPECT_EQ(OnlyCase(sides, across).change, Change::kFaster);
}

// A plan of bench_sharding, of one case.
std::string PlanWith(const std::string& step, const std::string& rest = "") {
  return R"({"backend":"mpi","world_size":4,"iterations":null,)" + rest +
         R"("cases":[{"name":"case","model":"m",)" +
         R"("operations":[{"count":1,"type":"f32","root":0}],)" + R"("step":"load","load":{)" +
         step + "}}]}";
}

Sides Planned(const std::string& base, const std::string& candidate) {
  Sides sides = SidesOf(8, 100, 100);
  for (Launch& launch : sides.base) launch.planned = PlannedBy(base);
  for (Launch& launch : sides.candidate) launch.planned = PlannedBy(candidate);
  return sides;
}

TEST(CaseGroupsTest, OtherWorkIsAnotherCaseUnlessAskedFor) {
  const std::string one = PlanWith(R"("passes":1,"slow_factor":2)");
  const Sides sides = Planned(one, PlanWith(R"("passes":2)"));
  ASSERT_TRUE(sides.base[0].planned.known);
  const LaunchComparison apart = Compare(sides.base, sides.candidate, {});
  EXPECT_EQ(apart.exit_code, ExitCode::kInconclusive);
  EXPECT_EQ(apart.Count(Change::kMissing), 2u) << apart.headline;
  EXPECT_NE(apart.cases[0].resolve.find("other work under this name (passes 1, there 2)"),
            std::string::npos)
      << apart.cases[0].resolve;
  CompareOptions across;
  across.across = {"work"};
  EXPECT_EQ(OnlyCase(sides, across).change, Change::kSame);

  const auto code = [&](const std::string& candidate) {
    const Sides both = Planned(one, candidate);
    return Compare(both.base, both.candidate, {}).exit_code;
  };
  EXPECT_EQ(code(one), ExitCode::kPass);
  EXPECT_EQ(code(PlanWith(R"("passes":1,"slow_factor":3)")), ExitCode::kPass) << "it only judges";
  EXPECT_EQ(code(PlanWith(R"("passes":1,"newer":3)")), ExitCode::kPass) << "another version";
  EXPECT_EQ(code(PlanWith(R"("passes":1)", R"("models":[{"name":"m","params":[]}],)")),
            ExitCode::kPass)
      << "only one tells";
  EXPECT_EQ(code("damaged"), ExitCode::kPass) << "not known";
}

TEST(CaseGroupsTest, WhatNoNameTellsIsWork) {
  const auto work = [](const std::string& plan) { return PlannedBy(plan).work.at("case"); };
  const std::string small = PlanWith("", R"("check":1,"models":[{"name":"m","params":[1]}],)");
  EXPECT_EQ(work(small), work(PlanWith("", R"("check":0,"models":[{"name":"m","params":[1]}],)")));
  EXPECT_NE(work(small), work(PlanWith("", R"("check":2,"models":[{"name":"m","params":[1]}],)")));
  EXPECT_NE(work(small), work(PlanWith("", R"("check":1,"models":[{"name":"m","params":[2]}],)")));
  // Buckets of a model, and a root.
  const auto buckets = [&](int count, int root) {
    return work(fmt::format(
        R"({{"backend":"mpi","world_size":4,"iterations":1,"cases":[{{"name":"case","model":"m",)"
        R"("operations":[{{"count":{},"type":"f32","root":{}}}]}}]}})",
        count, root));
  };
  EXPECT_NE(buckets(1, 0), buckets(2, 0));
  EXPECT_NE(buckets(1, 0), buckets(1, 1));
}

}  // namespace
}  // namespace lockstep::results::compare
