#include "stress/cases/plan_faults.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::cases {
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
  const auto planned = PlanFaults(
      ScenarioWith("kind = \"stop\"\nranks = [0, 2]\nat = \"iteration:3\"\nduration = \"100ms\"\n"),
      1);
  ASSERT_EQ(planned.size(), 2u);
  EXPECT_EQ(faults::Describe(planned[1]), "stop of rank 2 at iteration:3");
  EXPECT_EQ(planned[1].duration_seconds, 0.1);
  EXPECT_EQ(faults::SiteOf(planned[0].kind), faults::FaultSite::kOutside);
}

TEST(PlanFaults, EveryMomentIsUnderstood) {
  for (const char* at : {"init", "iteration:3", "collective:7", "backward:2", "epoch:1",
                         "before:join_exit", "before:finalize", "time:0.5s"}) {
    const auto planned = PlanFaults(
        ScenarioWith(std::string("kind = \"kill\"\nrank = 1\nat = \"") + at + "\"\n"), 1);
    EXPECT_EQ(faults::Describe(planned.at(0).moment), at);
  }
}

TEST(PlanFaults, RandomMomentsFollowFromTheSeed) {
  const scenario::Scenario scenario = ScenarioWith("kind = \"kill\"\nrank = 1\nat = \"random\"\n");
  std::set<std::string> drawn;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const auto planned = PlanFaults(scenario, seed);
    const auto again = PlanFaults(scenario, seed);
    EXPECT_EQ(faults::Describe(planned.at(0)), faults::Describe(again.at(0)));
    const faults::FaultMoment& moment = planned.at(0).moment;
    drawn.insert(faults::Describe(moment));
    if (moment.kind == faults::FaultMoment::Kind::kCollective) {
      EXPECT_GE(moment.number, 1);
      EXPECT_LE(moment.number, 5);
    }
  }
  // init, before:finalize, five iterations and five collectives.
  EXPECT_EQ(drawn.size(), 12u);
}

}  // namespace
}  // namespace lockstep::stress::cases
