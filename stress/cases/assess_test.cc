// From literal facts of a case to its verdict: what a scenario expects, and what is unknown.
#include "stress/cases/assess.h"

#include <csignal>
#include <string>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/cases/plan_faults.h"

namespace lockstep::stress::cases {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kLoop =
    "name = \"a/b\"\nranks = 2\n[workload]\nkind = \"all_reduce_loop\"\nrounds = 5\n";

StressCase CaseOf(const std::string& rest) {
  StressCase made;
  const Result<scenario::Scenario> scenario = scenario::ParseScenario(kLoop + rest, "a.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  if (scenario.ok()) made.scenario = *scenario;
  made.faults = PlanFaults(made.scenario, 1);
  return made;
}

workloads::ProgramReport Finished() {
  return workloads::ProgramReport{.status = OkStatus(), .where = "script"};
}

CaseFacts FactsOf(std::vector<verdict::RankEvidence> evidence) {
  CaseFacts facts;
  facts.reports.assign(evidence.size(), std::nullopt);
  facts.evidence = std::move(evidence);
  return facts;
}

CaseFacts Healthy() {
  CaseFacts facts = FactsOf({verdict::After49(0).Leaves(0), verdict::After49(1).Leaves(0)});
  facts.reports = {Finished(), Finished()};
  return facts;
}

CaseResult AssessOf(const std::string& rest, CaseFacts facts) {
  return Assess(CaseOf(rest), "gloo", 5, std::move(facts));
}

TEST(Assess, WithoutAnExpectationAllMustFinish) {
  EXPECT_EQ(AssessOf("", Healthy()).verdict, verdict::Verdict::kPass);
  const CaseResult failed =
      AssessOf("", FactsOf({verdict::At50(0), verdict::After49(1).Signalled(SIGKILL)}));
  EXPECT_EQ(failed.verdict, verdict::Verdict::kFail);
  EXPECT_THAT(failed.why, HasSubstr("rank 1 was killed"));
}

// No program compared the results: what the calls prove of them counts.
TEST(Assess, WithoutAnExpectationCallsThatSpoilDataAreNoPass) {
  collective::Operation max = verdict::AllReduce();
  max.reduction = collective::Reduction::kMax;
  const auto facts = [&] {
    CaseFacts mixed = FactsOf({verdict::After49(0).Does(verdict::AllReduce()).Leaves(0),
                               verdict::After49(1).Does(max).Leaves(0)});
    mixed.reports = {Finished(), Finished()};
    return mixed;
  };
  const CaseResult result = AssessOf("", facts());
  EXPECT_THAT(verdict::OutcomesOf(result.judgement),
              ElementsAre(verdict::Outcome::kFinished, verdict::Outcome::kFinished));
  EXPECT_EQ(result.verdict, verdict::Verdict::kFail);
  EXPECT_THAT(result.why, HasSubstr("rank 1 calls all_reduce 50 with f32 x 256 max"));
  // A scenario may expect just that.
  EXPECT_EQ(AssessOf("[expect.any]\nranks = \"finished\"\n", facts()).verdict,
            verdict::Verdict::kPass);
}

// Iteration by iteration, one all_reduce each; then the library fails on rank 1 in iteration 5.
verdict::RankEvidence FailsIn5(int rank, int wrong_iteration) {
  verdict::History history(rank);
  history.In(journal::Phase::kMeasure);
  for (int i = 0; i < 6; ++i) {
    collective::Operation call = verdict::AllReduce();
    if (i == wrong_iteration) call.reduction = collective::Reduction::kMax;
    history.Iteration(i).As(journal::Purpose::kStep);
    i < 5 ? history.Does(call) : rank == 1 ? history.FailsIn(call) : history.Enters(call);
  }
  return rank == 1 ? history.Reports("no route").Leaves(4) : history;
}

Recovery Resumed(const std::vector<verdict::RankEvidence>& evidence, std::int64_t first) {
  Recovery recovery;
  recovery.outcome = scenario::RecoveryOutcome::kResumed;
  recovery.members = {0, 1};
  recovery.first_iteration = first;
  recovery.failure = JudgeCase(CaseOf("").scenario, "gloo", evidence, 5);
  return recovery;
}

CaseResult AfterRecovery(Recovery recovery, CaseFacts last = Healthy()) {
  last.recoveries = {std::move(recovery)};
  return AssessOf("", std::move(last));
}

// What led to a recovery is over. What spoiled data before it is not.
TEST(Assess, ARecoveryForgivesWhatLedToIt) {
  const CaseResult over = AfterRecovery(Resumed({FailsIn5(0, -1), FailsIn5(1, -1)}, 5));
  EXPECT_EQ(over.verdict, verdict::Verdict::kPass) << over.why;
  ASSERT_EQ(over.judgement.findings.size(), 1u);
  EXPECT_EQ(over.judgement.findings[0].cause, verdict::Cause::kRankFailed);
  const CaseResult spoiled = AfterRecovery(Resumed({FailsIn5(0, 2), FailsIn5(1, -1)}, 5));
  EXPECT_EQ(spoiled.verdict, verdict::Verdict::kFail);
  EXPECT_THAT(spoiled.why, HasSubstr("calls all_reduce 3 with f32 x 256 sum, rank 0"));
  EXPECT_EQ(spoiled.judgement.findings.at(0).cause, verdict::Cause::kRankFailed);
}

// Calls that do not match are over when all ranks call them anew.
TEST(Assess, ARecoveryForgivesAMismatchOfAnIterationThatIsRepeated) {
  const auto mismatch = [](std::int64_t first) {
    Recovery recovery = Resumed({FailsIn5(0, 2), FailsIn5(1, -1)}, first);
    std::erase_if(recovery.failure.findings, [](const verdict::Finding& finding) {
      return finding.cause != verdict::Cause::kReductionMismatch;
    });
    EXPECT_EQ(recovery.failure.findings.size(), 1u);
    return AfterRecovery(std::move(recovery)).verdict;
  };
  EXPECT_EQ(mismatch(2), verdict::Verdict::kPass);
  EXPECT_EQ(mismatch(3), verdict::Verdict::kFail);
}

TEST(Assess, ARecoveryForgivesNothingOfItsOwnGeneration) {
  collective::Operation max = verdict::AllReduce();
  max.reduction = collective::Reduction::kMax;
  CaseFacts last = FactsOf({verdict::After49(0).Does(verdict::AllReduce()).Leaves(0),
                            verdict::After49(1).Does(max).Leaves(0)});
  last.reports = {Finished(), Finished()};
  const CaseResult result =
      AfterRecovery(Resumed({FailsIn5(0, -1), FailsIn5(1, -1)}, 5), std::move(last));
  EXPECT_EQ(result.verdict, verdict::Verdict::kFail);
  EXPECT_THAT(result.why, HasSubstr("rank 1 calls all_reduce 50 with f32 x 256 max"));
}

TEST(Assess, SaysWhatWasCompared) {
  const auto why = [](const workloads::ProgramReport& one) {
    CaseFacts facts = Healthy();
    facts.reports = {one, Finished()};
    return AssessOf("", std::move(facts)).why;
  };
  workloads::ProgramReport report = Finished();
  EXPECT_EQ(why(report), "every rank finished; data not compared");
  report.checked = 4;
  EXPECT_EQ(why(report), "every rank finished with right data");
  report.unchecked = 1;
  EXPECT_EQ(why(report), "every rank finished; data compared in part");
}

// Whether the data are right is not known when a fault that changed them is not seen.
TEST(Assess, ACorruptedResultThatNobodySawIsUnknown) {
  const std::string corrupt =
      "[[fault]]\nkind = \"corrupt_result\"\nrank = 1\nat = \"collective:1\"\n";
  const auto with = [](bool fired, const std::string& wrong_data) {
    CaseFacts facts = Healthy();
    facts.fired = {fired};
    facts.evidence[1].wrong_data = wrong_data;
    return facts;
  };
  const CaseResult unseen = AssessOf(corrupt, with(true, ""));
  EXPECT_EQ(unseen.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(unseen.why,
              HasSubstr("data not compared; no comparison of data shows corrupt_result"));
  EXPECT_EQ(AssessOf(corrupt, with(true, "element 3")).verdict, verdict::Verdict::kFail);
  // A scenario may expect just that.
  EXPECT_EQ(AssessOf(corrupt + "[expect.any]\nranks = \"finished\"\n", with(true, "")).verdict,
            verdict::Verdict::kPass);
}

TEST(Assess, WrongDataThatNoExpectationNamesFail) {
  const auto with = [](const std::string& expected) {
    CaseFacts facts = Healthy();
    facts.evidence[1].wrong_data = "element 3";
    facts.reports[0]->figures["batches"] = facts.reports[1]->figures["batches"] = 3;
    return AssessOf("[expect.any]\n" + expected + "\n", std::move(facts));
  };
  const CaseResult result = with("figures = { batches = 3 }");
  EXPECT_EQ(result.verdict, verdict::Verdict::kFail);
  EXPECT_THAT(result.why, HasSubstr("it does not expect wrong data"));
  EXPECT_EQ(with("cause = \"data_corruption\"").verdict, verdict::Verdict::kPass);
  EXPECT_EQ(with("ranks = [\"finished\", \"corrupt\"]").verdict, verdict::Verdict::kPass);
}

TEST(Assess, AnExpectationIsMetOrNot) {
  const std::string killed =
      "[expect.gloo]\nranks = [[\"failed\", \"hung\"], \"killed\"]\ncause = \"rank_killed\"\n"
      "culprits = [1]\n";
  const auto facts = [] {
    return FactsOf({verdict::At50(0), verdict::After49(1).Signalled(SIGKILL)});
  };
  EXPECT_EQ(AssessOf(killed, facts()).verdict, verdict::Verdict::kPass);
  EXPECT_THAT(AssessOf(killed, facts()).why,
              StartsWith("as expected: rank 1 was killed by SIGKILL"));
  EXPECT_EQ(AssessOf(killed, Healthy()).verdict, verdict::Verdict::kFail);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = killed;
    text.replace(text.find(from), from.size(), to);
    return AssessOf(text, facts()).verdict;
  };
  EXPECT_EQ(with("\"hung\"", "\"finished\""), verdict::Verdict::kFail);
  EXPECT_EQ(with("\"rank_killed\"", "\"rank_crashed\""), verdict::Verdict::kFail);
  EXPECT_EQ(with("[1]", "[0]"), verdict::Verdict::kFail);
  EXPECT_EQ(with("expect.gloo", "expect.any"), verdict::Verdict::kPass);
  EXPECT_EQ(with("expect.gloo", "expect.mpi"), verdict::Verdict::kUnknown);
}

TEST(Assess, WhatDidNotHappenIsNoPass) {
  const std::string fault = "[[fault]]\nkind = \"kill\"\nrank = 1\nat = \"iteration:3\"\n";
  CaseFacts facts = Healthy();
  facts.fired = {false};
  const CaseResult result = AssessOf(fault, std::move(facts));
  EXPECT_EQ(result.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(result.why, HasSubstr("did not fire: kill of rank 1 at iteration:3"));
  CaseFacts cut = Healthy();
  cut.cut_short = "ended by a signal";
  EXPECT_EQ(AssessOf("", std::move(cut)).verdict, verdict::Verdict::kUnknown);
  EXPECT_EQ(AssessOf("", FactsOf({verdict::At50(0), verdict::After49(1).Lost()})).verdict,
            verdict::Verdict::kUnknown);
  CaseFacts unable = FactsOf({verdict::After49(0).Leaves(4), verdict::After49(1).Leaves(4)});
  unable.reports[0] = workloads::ProgramReport{.status = EnvironmentError("no memory")};
  const CaseResult not_run = AssessOf("", std::move(unable));
  EXPECT_EQ(not_run.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(not_run.why, HasSubstr("rank 0 could not run it: no memory"));
}

TEST(Assess, AnAgentThatEndedIsUnknownUnlessSomethingElseIsProved) {
  const auto with = [](int signal) {
    CaseFacts facts = FactsOf({verdict::At50(0), verdict::At50(1), verdict::At50(2)});
    facts.evidence[0].state = verdict::ProcessState::kLost;
    if (signal != 0) facts.evidence[1] = verdict::After49(1).Signalled(signal);
    facts.places = {{"node1", verdict::Loss::kClosed},
                    {"node1", verdict::Loss::kNone},
                    {"node1", verdict::Loss::kNone}};
    return facts;
  };
  const CaseResult alone = AssessOf("", with(0));
  EXPECT_EQ(alone.verdict, verdict::Verdict::kUnknown);
  EXPECT_THAT(alone.why, HasSubstr("the agent of rank 0 ended"));
  EXPECT_EQ(AssessOf("", with(SIGSEGV)).verdict, verdict::Verdict::kFail);
}

TEST(Assess, OutOfMemoryHasANameOfItsOwn) {
  CaseFacts facts =
      FactsOf({verdict::At50(0), verdict::After49(1).Reports("out of memory: 8 MiB").Leaves(1)});
  EXPECT_EQ(AssessOf("", std::move(facts)).judgement.findings.at(0).cause,
            verdict::Cause::kOutOfMemory);
}

// Loads batches and meets the other rank in a barrier for each, but that of batch `skipped`.
verdict::History Loads(int rank, int batches, int skipped) {
  verdict::History history(rank);
  for (int i = 0; i < batches; ++i) {
    history.In(journal::Phase::kLoad).In(journal::Phase::kMeasure);
    history.Iteration(i).As(journal::Purpose::kStep);
    if (i != skipped) history.Does({.collective = collective::Collective::kBarrier});
  }
  return history.In(journal::Phase::kLoad);
}

TEST(Assess, WhoHadABatchForTheCallLacksNoInputs) {
  const auto cause = [](int batches, int skipped) {
    const Result<scenario::Scenario> scenario = scenario::ParseScenario(
        "name = \"a/b\"\nranks = 2\n[workload]\nkind = \"sharded_loading\"\nsamples = 64\n"
        "batch = 8\nbetween = \"barrier\"\n",
        "a.toml");
    EXPECT_TRUE(scenario.ok()) << scenario.status().message();
    verdict::History waits = Loads(0, 3, -1).In(journal::Phase::kMeasure);
    waits.Iteration(3).As(journal::Purpose::kStep);
    waits.Enters({.collective = collective::Collective::kBarrier});
    const verdict::Judgement judgement =
        JudgeCase(*scenario, "gloo", {waits, Loads(1, batches, skipped).Leaves(0)}, 5);
    EXPECT_EQ(judgement.findings.size(), 1u);
    EXPECT_THAT(judgement.findings.at(0).culprits, ElementsAre(1));
    return judgement.findings.at(0).cause;
  };
  EXPECT_EQ(cause(3, -1), verdict::Cause::kUnevenInputs);
  EXPECT_EQ(cause(4, 1), verdict::Cause::kRankExited);
  EXPECT_EQ(cause(4, 3), verdict::Cause::kRankExited);
}

TEST(AsJudged, AFinishedProgramCallsNothingMore) {
  const std::vector<bool> heals(2, false);
  const auto judged =
      AsJudged({verdict::At50(0), verdict::After49(1).In(journal::Phase::kFinalize)},
               {std::nullopt, Finished()}, heals, /*stuck=*/false);
  EXPECT_EQ(judged[1].state, verdict::ProcessState::kExited);
  EXPECT_EQ(judged[0].state, verdict::ProcessState::kRunning);
  const auto stuck = AsJudged({verdict::At50(0), verdict::After49(1).In(journal::Phase::kFinalize)},
                              {std::nullopt, Finished()}, heals, /*stuck=*/true);
  EXPECT_EQ(stuck[1].state, verdict::ProcessState::kRunning);
}

TEST(AsJudged, AStopThatWillEndIsNoStop) {
  const std::vector<std::optional<workloads::ProgramReport>> reports(2);
  const std::vector<verdict::RankEvidence> evidence = {verdict::At50(0),
                                                       verdict::After49(1).Stopped(SIGSTOP)};
  EXPECT_EQ(AsJudged(evidence, reports, {false, true}, false)[1].state,
            verdict::ProcessState::kRunning);
  EXPECT_EQ(AsJudged(evidence, reports, {false, false}, false)[1].state,
            verdict::ProcessState::kStopped);
}

TEST(AsJudged, DifferentGradientsAreWrongData) {
  std::vector<std::optional<workloads::ProgramReport>> reports(3, Finished());
  for (auto& report : reports) report->gradients = "a";
  reports[2]->gradients = "b";
  const auto judged = AsJudged({verdict::After49(0), verdict::After49(1), verdict::After49(2)},
                               reports, std::vector<bool>(3, false), false);
  EXPECT_EQ(judged[0].wrong_data, "");
  EXPECT_NE(judged[2].wrong_data, "");
}

}  // namespace
}  // namespace lockstep::stress::cases
