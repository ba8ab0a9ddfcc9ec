#include "stress/faults/fault_plan.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::faults {
namespace {

scenario::Scenario ScenarioWith(const std::string& fault) {
  const Result<scenario::Scenario> scenario = scenario::ParseScenario(
      "name = \"a/b\"\nranks = 3\n[workload]\nkind = \"all_reduce_loop\"\nrounds = 5\n[[fault]]\n" +
          fault,
      "a.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? *scenario : scenario::Scenario();
}

TEST(PlanFaults, OneARankAsWritten) {
  const auto faults = PlanFaults(
      ScenarioWith("kind = \"stop\"\nranks = [0, 2]\nat = \"iteration:3\"\nduration = \"100ms\"\n"),
      1);
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(Describe(faults[1]), "stop of rank 2 at iteration:3");
  EXPECT_EQ(faults[1].duration_seconds, 0.1);
  EXPECT_EQ(SiteOf(faults[0].kind), FaultSite::kOutside);
}

TEST(PlanFaults, EveryMomentIsUnderstood) {
  for (const char* at : {"init", "iteration:3", "collective:7", "backward:2", "epoch:1",
                         "before:join_exit", "before:finalize", "time:0.5s"}) {
    const auto faults = PlanFaults(
        ScenarioWith(std::string("kind = \"kill\"\nrank = 1\nat = \"") + at + "\"\n"), 1);
    EXPECT_EQ(Describe(faults.at(0).moment), at);
  }
}

TEST(PlanFaults, RandomMomentsFollowFromTheSeed) {
  const scenario::Scenario scenario = ScenarioWith("kind = \"kill\"\nrank = 1\nat = \"random\"\n");
  std::set<std::string> drawn;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto faults = PlanFaults(scenario, seed);
    const auto again = PlanFaults(scenario, seed);
    EXPECT_EQ(Describe(faults.at(0)), Describe(again.at(0)));
    const FaultMoment& moment = faults.at(0).moment;
    drawn.insert(Describe(moment));
    if (moment.kind == FaultMoment::Kind::kCollective) {
      EXPECT_GE(moment.number, 1);
      EXPECT_LE(moment.number, 5);
    }
  }
  // init, before:finalize, five iterations and five collectives.
  EXPECT_EQ(drawn.size(), 12u);
}

}  // namespace
}  // namespace lockstep::stress::faults
