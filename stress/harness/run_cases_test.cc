// Cases of a launch over a list of events: which verdicts there are when ranks cannot begin. Two
// ranks; a list of steps a case.
#include "stress/harness/run_cases.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/control/codec.h"
#include "core/control/records.h"
#include "core/coordinator/testing/fake_coordinator.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "stress/cases/catalogue.h"
#include "stress/cases/plan_faults.h"
#include "stress/harness/record.h"
#include "stress/run/protocol.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::harness {
namespace {

using coordinator::Script;
using coordinator::ScriptStep;
using verdict::History;

struct ScriptedCase {
  std::string rest;  // of its file
  Script steps;
};

cases::StressCase CaseOf(const std::string& name, const std::string& rest) {
  cases::StressCase made;
  made.text = fmt::format(
      "name = \"a/{}\"\nranks = 2\n[workload]\nkind = \"all_reduce_loop\"\nrounds = 5\n{}", name,
      rest);
  made.scenario = scenario::ParseScenario(made.text, "a.toml").value();
  made.faults = cases::PlanFaults(made.scenario, 1);
  made.label = made.scenario.name;
  made.seed = 1;
  return made;
}

// Verdicts and reasons, a line a case; what could not be shown; an error.
std::string RunAll(const std::vector<ScriptedCase>& all) {
  StressOptions options;
  options.progress = false;
  StressOutcome outcome;
  outcome.backend = options.backend;
  Script steps;
  for (const ScriptedCase& one : all) {
    outcome.cases.push_back(CaseOf(fmt::format("{}", outcome.cases.size()), one.rest));
    coordinator::Append(steps, coordinator::When("start"));
    coordinator::Append(steps, one.steps);
  }
  coordinator::FakeCoordinator coordinator(2, std::move(steps),
                                           [](const control::Message&) { return "message"; });
  int begun = 0;
  const Status status = RunCases(
      coordinator, options, [&begun] { ++begun; }, [] {}, outcome);
  std::string text = begun == 0 ? "" : fmt::format("begun: {}\n", begun);
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    text += fmt::format("{} {}: {}\n", outcome.cases[i].label,
                        verdict::NameOf(outcome.results[i].verdict), outcome.results[i].why);
  }
  for (const std::string& unmet : outcome.unmet) text += fmt::format("not run {}\n", unmet);
  if (outcome.terminated) text += "no further case\n";
  if (!status.ok()) text += fmt::format("error: {}\n", status.message());
  // Whatever came of a case can be shown and stored.
  results::store::Run run;
  Conclude(coordinator.agents(), {}, outcome, run);
  EXPECT_FALSE(FormatStressTable(outcome, run).empty());
  EXPECT_FALSE(FormatStressJson(outcome).empty());
  return text;
}

ScriptStep Told(int rank, const Status& status, const std::string& where) {
  return coordinator::Said(
      rank, run::kReportMessage,
      control::Encode(workloads::ProgramReport{.status = status, .where = where}));
}

Script Left(int code0, int code1) {
  return {coordinator::Exited(0, code0), coordinator::Exited(1, code1)};
}

Script BothFinish() {
  return coordinator::Steps(
      coordinator::Ranks({verdict::After49(0).Leaves(0), verdict::After49(1).Leaves(0)}),
      Told(0, OkStatus(), "script"), Told(1, OkStatus(), "script"), Left(0, 0));
}

const Status kNoGpu = EnvironmentError("no GPU");

// Rank 1 has no GPU, and rank 0 was left alone.
Script OneLacks() {
  return coordinator::Steps(
      coordinator::Ranks({History(0).In(journal::Phase::kConnect).Leaves(1),
                          History(1).In(journal::Phase::kStart).Reports("no GPU").Leaves(4)}),
      Told(1, kNoGpu, workloads::kWherePlatform), Told(0, SystemFailed("alone"), "connect"),
      Left(1, 4));
}

Script BothLack() {
  return coordinator::Steps(
      coordinator::Ranks({History(0).In(journal::Phase::kStart).Reports("no GPU").Leaves(4),
                          History(1).In(journal::Phase::kStart).Reports("no GPU").Leaves(4)}),
      Told(0, kNoGpu, workloads::kWherePlatform), Told(1, kNoGpu, workloads::kWherePlatform),
      Left(4, 4));
}

// Its agent has started the rank with other variables.
std::string Fault(const std::string& ranks) {
  return fmt::format(
      "[[fault]]\nkind = \"environment\"\n{}\nvariables = [\"CUDA_VISIBLE_DEVICES=\"]\n"
      "at = \"init\"\n",
      ranks);
}
const std::string kOfOne = Fault("rank = 1");
const std::string kOfBoth = Fault("ranks = [0, 1]");
constexpr char kFails[] =
    "[expect.any]\nranks = [[\"hung\", \"failed\"], \"failed\"]\nculprits = [1]\n";
constexpr char kFinishes[] = "[expect.any]\nranks = \"finished\"\n";

ScriptStep Applied(int rank, std::uint32_t fault) {
  return coordinator::OfFault(rank, fault, control::FaultNews::kApplied);
}

constexpr char kPassed[] = "pass: every rank finished; data not compared\n";
constexpr char kLacked[] = "unknown: rank 1 could not run it: no GPU\n";

TEST(RunCases, ItHasBegunOnceARankHasWhatItRunsOn) {
  const Script has = {coordinator::Said(0, run::kMachineMessage, "facts"),
                      coordinator::Said(1, run::kMachineMessage, "facts")};
  const Script passes = coordinator::Steps(has, BothFinish());
  EXPECT_EQ(RunAll({{"", BothFinish()}, {"", passes}, {"", passes}}),
            fmt::format("begun: 1\na/0 {}a/1 {}a/2 {}", kPassed, kPassed, kPassed));
}

TEST(RunCases, WhatTheMachineLacksIsToldOnce) {
  EXPECT_EQ(RunAll({{"", OneLacks()}, {"", BothFinish()}}), "error: no GPU\n");
}

TEST(RunCases, VerdictsStandWhenALaterCaseLacks) {
  EXPECT_EQ(RunAll({{"", BothFinish()}, {"", OneLacks()}, {"", BothFinish()}}),
            fmt::format("a/0 {}a/1 {}a/2 {}", kPassed, kLacked, kPassed));
}

TEST(RunCases, VerdictsStandWhenRanksOfALaterCaseAreNotStarted) {
  EXPECT_EQ(RunAll({{"", BothFinish()},
                    {kOfOne, {coordinator::Refused(EnvironmentError("rank 1: fork: no memory"))}},
                    {"", BothFinish()}}),
            fmt::format("a/0 {}a/1 unknown: its ranks could not be started: rank 1: fork: no "
                        "memory\na/2 {}",
                        kPassed, kPassed));
  EXPECT_EQ(RunAll({{"", {coordinator::Refused(EnvironmentError("rank 1: fork: no memory"))}}}),
            "error: rank 1: fork: no memory\n");
}

TEST(RunCases, WhatAFaultTakesFromARankIsJudged) {
  const Script lacks = coordinator::Steps(Applied(1, 0), OneLacks());
  EXPECT_EQ(
      RunAll({{kOfOne + kFails, lacks}, {"", BothFinish()}}),
      fmt::format("a/0 pass: as expected: rank 1 reported an error while starting: no GPU\na/1 {}",
                  kPassed));
}

// Whether the fault or the machine did that nobody knows.
TEST(RunCases, ALackThatIsNotExpectedIsUnknown) {
  const Script lacks = coordinator::Steps(Applied(1, 0), OneLacks());
  EXPECT_EQ(RunAll({{kOfOne + kFinishes, lacks}, {"", BothFinish()}}),
            fmt::format("a/0 {}a/1 {}", kLacked, kPassed));
}

// No rank shows what the machine has.
TEST(RunCases, ALackOfAllRanksIsUnknown) {
  const Script lack = coordinator::Steps(Applied(0, 0), Applied(1, 1), BothLack());
  const std::string expected = "[expect.any]\nranks = \"failed\"\n";
  EXPECT_EQ(RunAll({{kOfBoth + expected, lack}, {"", BothFinish()}}),
            fmt::format("a/0 unknown: rank 0 could not run it: no GPU\na/1 {}", kPassed));
  EXPECT_EQ(RunAll({{kOfBoth + expected, lack}}),
            "a/0 unknown: rank 0 could not run it: no GPU\n"
            "error: no GPU\n");
}

TEST(RunCases, WhatTheBackendCannotShowIsNotRun) {
  const Script unmet = coordinator::Steps(
      coordinator::Ranks({History(0).Leaves(2), History(1).Leaves(2)}),
      Told(0, Unsupported("needs a GPU"), workloads::kWherePlatform), Left(2, 2));
  EXPECT_EQ(RunAll({{"", unmet}, {"", BothFinish()}}),
            fmt::format("a/1 {}not run a/0: needs a GPU\n", kPassed));
}

}  // namespace
}  // namespace lockstep::stress::harness
