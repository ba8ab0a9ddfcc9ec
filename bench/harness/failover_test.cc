// What the successor of a lost coordinator makes of what is left: which file it writes, which cases
// count, whom it names. Three ranks, two cases; rank 0's agent is lost.
#include "bench/harness/failover.h"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "bench/measure/measurement_codec.h"
#include "bench/measure/protocol.h"
#include "bench/measure/run_record.h"
#include "bench/plan/testing/doubling.h"
#include "core/coordinator/testing/fake_coordinator.h"
#include "core/verdict/testing/history.h"
#include "gtest/gtest.h"
#include "results/store/partial_path.h"
#include "results/store/store.h"
#include "session/session.h"

namespace lockstep::bench::harness {
namespace {

plan::Plan ThreeRanks() {
  plan::BenchSpec spec;
  spec.backend = "gloo";
  spec.iterations = 4;
  return plan::Doubling(spec, 3, 2);
}

// A visit of a case: samples of 10 us each, and the end of the batch.
std::string Rows(std::uint32_t case_index, int count, std::uint32_t round = 0,
                 std::int64_t wrong = 0) {
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    const auto entry = static_cast<Ticks>(coordinator::FakeCoordinator::kBeginNs + i * 20'000);
    measure::AppendTo(bytes, measure::SampleRecord{case_index, round, entry, entry + 10'000});
  }
  AppendTo(bytes, measure::BatchRecord{case_index, round, 1'000'000, count, wrong,
                                       static_cast<std::uint32_t>(count)});
  return bytes;
}
verdict::History In(std::uint32_t case_index, int rank) {
  return verdict::History(rank)
      .Case(case_index)
      .In(journal::Phase::kMeasure)
      .Enters(verdict::AllReduce());
}
verdict::RankEvidence Gone(int rank) { return verdict::History(rank).Lost(); }

coordinator::FailoverReport FailoverReportOf(std::vector<verdict::RankEvidence> evidence,
                                             std::vector<std::string> data) {
  coordinator::FailoverReport failover;
  failover.successor = 1;
  failover.whole = true;
  failover.lifetime = 0;
  for (const verdict::RankEvidence& rank : evidence) {
    control::AgentInfo& agent = failover.agents.emplace_back();
    agent.rank = rank.rank;
    agent.host = agent.boot_id = "a";
    const bool lost = rank.state == verdict::ProcessState::kLost;
    failover.places.push_back({"a", lost ? verdict::Loss::kClosed : verdict::Loss::kNone});
    failover.journals.push_back(rank.journal);
  }
  failover.evidence = std::move(evidence);
  failover.data_cut.assign(data.size(), false);
  failover.data = std::move(data);
  return failover;
}

std::string TextOf(const results::store::Run& run) {
  std::string text =
      fmt::format("{}{}:", verdict::NameOf(run.verdict), run.complete ? " complete" : "");
  for (const verdict::RankOutcome& rank : run.judgement.outcomes)
    text += fmt::format(" {}", verdict::NameOf(rank.outcome));
  for (const verdict::Finding& finding : run.judgement.findings) {
    text += fmt::format("; {} of {}", finding.cause.name(), fmt::join(finding.culprits, ","));
  }
  text += "\n";
  for (const results::store::CaseRecord& record : run.cases) {
    text += fmt::format("{}: {}, {} iterations, {:.0f} ns, slowest {}{}{}\n",
                        verdict::NameOf(record.judgement.verdict), record.summary.stopped_by,
                        record.summary.iterations, record.summary.median_ns,
                        record.summary.max_rank, record.arrivals ? "" : ", no arrivals",
                        record.judgement.outcomes.empty() ? ", no outcomes" : "");
  }
  text += fmt::format("{} journals\n", run.history.size());
  return text;
}

std::string Conclude(const coordinator::FailoverReport& failover, int repetitions = 1) {
  const std::string path = testing::TempDir() + "/failover.h5";
  const std::string partial = results::store::PartialPath(path, failover.successor);
  for (const std::string& file : {path, partial}) std::filesystem::remove(file);
  std::int64_t now_ns = coordinator::FakeCoordinator::kBeginNs;
  const VirtualTime time(&now_ns);
  testing::internal::CaptureStderr();
  results::store::Run left = measure::NewRun("bench", ThreeRanks());
  ConcludeAfter(failover, ThreeRanks(), repetitions, control::LaunchContext{}, left,
                [](const measure::SampleBook&) {});
  const ExitCode code =
      session::TakeOver("bench", path, failover, std::move(left),
                        [](const results::store::Run&, const auto&) { return OkStatus(); });
  const std::string told = testing::internal::GetCapturedStderr();
  std::string text = fmt::format("exit code {}\n", static_cast<int>(code));
  if (told.find("rank 1's agent took its place") == std::string::npos) text += told;
  for (const std::string& file : {path, partial}) {
    if (!std::filesystem::exists(file)) continue;
    const results::store::Run run = results::store::ReadRun(file).value();
    text += file == path ? "" : "partial ";
    text +=
        (failover.replicated.empty() ? "" : run.id + " of " + run.started_at + " ") + TextOf(run);
  }
  return text;
}

TEST(SummaryLine, ACaseThatWasBegunHasSamples) {
  results::store::Run run = measure::NewRun("bench", ThreeRanks());
  run.verdict = verdict::Verdict::kUnknown;
  for (const std::int64_t iterations : {4, 1, 0}) {
    results::store::CaseRecord& record = run.cases.emplace_back();
    record.summary.iterations = iterations;
    record.judgement.verdict =
        iterations == 4 ? verdict::Verdict::kPass : verdict::Verdict::kUnknown;
  }
  EXPECT_EQ(measure::SummaryLine(run, ThreeRanks()),
            "1 of 3 cases measured and 1 in part before the run was ended; run it again");
  run.cases.erase(run.cases.begin() + 1);
  EXPECT_EQ(measure::SummaryLine(run, ThreeRanks()),
            "1 of 2 cases measured before the run was ended; run it again");
}

TEST(SummaryLine, NoElementIsRightThatNoneCompared) {
  results::store::Run run = measure::NewRun("bench", ThreeRanks());
  run.verdict = run.cases.emplace_back().judgement.verdict = verdict::Verdict::kPass;
  EXPECT_NE(
      measure::SummaryLine(run, ThreeRanks()).find("1 of 1 cases measured, no element checked"),
      std::string::npos);
  run.cases[0].summary.checked_elements = 1;
  EXPECT_NE(measure::SummaryLine(run, ThreeRanks()).find("1 of 1 cases measured, no wrong element"),
            std::string::npos);
}

TEST(Failover, TheCoordinatorsAgentIsGone) {
  EXPECT_EQ(Conclude(FailoverReportOf({Gone(0), In(1, 1), In(1, 2)},
                                      {"", Rows(0, 4) + Rows(1, 2), Rows(0, 4) + Rows(1, 1)})),
            "exit code 3\n"
            "unknown: killed finished finished; agent_lost of 0\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 1 iterations, 10000 ns, slowest 1, no arrivals\n"
            "2 journals\n");
}

TEST(Failover, OthersMayHoldTheNameOfTheFile) {
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(1, 1), In(1, 2)}, {"", Rows(0, 4), Rows(0, 4)});
  failover.whole = false;
  EXPECT_EQ(Conclude(failover),
            "exit code 3\n"
            "partial unknown: killed finished finished; agent_lost of 0\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "2 journals\n");
}

TEST(Failover, ItIsTheSameRun) {
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(0, 1), In(0, 2)}, {"", "", ""});
  failover.replicated = {"0123abcd 2026-01-02T03:04:05Z"};
  EXPECT_EQ(Conclude(failover),
            "exit code 3\n"
            "0123abcd of 2026-01-02T03:04:05Z unknown: killed finished finished; agent_lost of 0\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "unknown: not_run, 0 iterations, nan ns, slowest -1, no arrivals, no outcomes\n"
            "2 journals\n");
}

TEST(Failover, ARankHadDied) {
  EXPECT_EQ(Conclude(FailoverReportOf({Gone(0), In(1, 1), In(1, 2).Signalled(SIGSEGV)},
                                      {"", Rows(0, 4), Rows(0, 4)})),
            "exit code 1\n"
            "fail: killed hung crashed; agent_lost of 0; rank_crashed of 2\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "fail: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "2 journals\n");
}

// Whoever stopped it may continue it: nothing is known of the system under test.
TEST(Failover, ARankWasStoppedForAMoment) {
  EXPECT_EQ(Conclude(FailoverReportOf({Gone(0), In(1, 1), In(1, 2).Stopped(SIGSTOP).Silent(0.05)},
                                      {"", Rows(0, 4), Rows(0, 4)})),
            "exit code 3\n"
            "unknown: killed finished finished; agent_lost of 0\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "2 journals\n");
}

TEST(Failover, AllWaitForAnOrder) {
  const auto idle = [](int rank) {
    return verdict::History(rank).Case(1).In(journal::Phase::kCheck).Idle();
  };
  EXPECT_EQ(Conclude(FailoverReportOf({Gone(0), idle(1), idle(2)},
                                      {"", Rows(0, 4) + Rows(1, 4), Rows(0, 4) + Rows(1, 4)})),
            "exit code 3\n"
            "unknown: killed finished finished; agent_lost of 0\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "2 journals\n");
}

// Rank 2 kept the first case only: what came behind it nobody can tell, unless rank 1 has nothing
// of it either.
TEST(Failover, WhatWasNotKeptIsUnknown) {
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(0, 1), In(0, 2)}, {"", Rows(0, 4) + Rows(1, 4), Rows(0, 4)});
  failover.data_cut = {true, false, true};
  std::int64_t now_ns = coordinator::FakeCoordinator::kBeginNs;
  const VirtualTime time(&now_ns);
  testing::internal::CaptureStderr();
  results::store::Run left = measure::NewRun("bench", ThreeRanks());
  ConcludeAfter(failover, ThreeRanks(), 1, control::LaunchContext{}, left,
                [](const measure::SampleBook&) {});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "bench: note: not all records of rank 2 were kept (1 GiB a rank) or came in time; what "
            "came later is unknown\n");
  EXPECT_EQ(left.environment.back(),
            std::make_pair(std::string("launch/records_cut"), std::string("2")));
  EXPECT_EQ(left.cases[1].summary.stopped_by, "not_kept");
  EXPECT_EQ(left.cases[1].judgement.verdict, verdict::Verdict::kUnknown);
  failover.data[1] = Rows(0, 4);
  EXPECT_NE(Conclude(failover).find("not_run"), std::string::npos);
}

TEST(Failover, RanksThatAreSilentToo) {
  EXPECT_EQ(
      Conclude(FailoverReportOf({Gone(0), In(0, 1).Silent(31),
                                 verdict::History(2).Case(0).In(journal::Phase::kCheck).Silent(31)},
                                {"", Rows(0, 1), Rows(0, 1)})),
      "exit code 3\n"
      "unknown: killed hung hung; agent_lost of 0\n"
      "unknown: lost, 1 iterations, 10000 ns, slowest 1, no arrivals\n"
      "unknown: not_run, 0 iterations, nan ns, slowest -1, no arrivals, no outcomes\n"
      "2 journals\n");
}

TEST(Failover, AHostIsLost) {
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(0, 1), In(0, 2)}, {"", Rows(0, 3), Rows(0, 3)});
  for (const int rank : {1, 2}) {
    failover.agents[static_cast<std::size_t>(rank)].boot_id = "b";
    failover.places[static_cast<std::size_t>(rank)].host = "b";
  }
  EXPECT_EQ(Conclude(failover),
            "exit code 1\n"
            "fail: killed finished finished; host_lost of 0\n"
            "fail: lost, 3 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: not_run, 0 iterations, nan ns, slowest -1, no arrivals, no outcomes\n"
            "2 journals\n");
}

constexpr char kIdentity[] = "0123abcd 2026-01-02T03:04:05Z";

// That a repetition is over: one more round, of two cases with four iterations.
measure::Measurement Over(std::uint32_t repetition) {
  return {.stopped_by = {{"iterations", "iterations"}},
          .ends = {{.rounds = repetition, .data = {{.checked = 8}, {.checked = 8}}}}};
}

std::string RowsOfBoth(std::uint32_t round) { return Rows(0, 4, round) + Rows(1, 4, round); }

TEST(Failover, RepetitionsThatAreOverAreApart) {
  coordinator::FailoverReport failover = FailoverReportOf(
      {Gone(0), In(0, 1), In(0, 2)}, {"", RowsOfBoth(0) + RowsOfBoth(1) + Rows(0, 2, 2),
                                      RowsOfBoth(0) + RowsOfBoth(1) + Rows(0, 1, 2)});
  failover.replicated = {kIdentity, EncodeMeasurement(Over(1)), EncodeMeasurement(Over(2))};
  EXPECT_EQ(Conclude(failover, 4),
            "exit code 3\n"
            "0123abcd of 2026-01-02T03:04:05Z unknown: killed finished finished; agent_lost of 0\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 1 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: not_run, 0 iterations, nan ns, slowest -1, no arrivals, no outcomes\n"
            "2 journals\n");
}

TEST(Failover, AllRepetitionsAreOver) {
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(1, 1), In(1, 2)},
                       {"", RowsOfBoth(0) + RowsOfBoth(1), RowsOfBoth(0) + RowsOfBoth(1)});
  failover.replicated = {kIdentity, EncodeMeasurement(Over(1)), EncodeMeasurement(Over(2))};
  EXPECT_EQ(Conclude(failover, 2),
            "exit code 3\n"
            "0123abcd of 2026-01-02T03:04:05Z unknown: killed finished finished; agent_lost of 0\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "2 journals\n");
}

// What the lost rank had compared is known of repetitions that are over.
TEST(Failover, TheLostRankHadWrongData) {
  measure::Measurement known = Over(1);
  known.ends[0].data[1] = {.checked = 8, .wrong_elements = 1, .wrong = {{{0, 0, 0, 1, "3", "4"}}}};
  coordinator::FailoverReport failover =
      FailoverReportOf({Gone(0), In(0, 1), In(0, 2)}, {"", RowsOfBoth(0), RowsOfBoth(0)});
  failover.replicated = {kIdentity, EncodeMeasurement(known)};
  EXPECT_EQ(Conclude(failover, 2),
            "exit code 1\n"
            "0123abcd of 2026-01-02T03:04:05Z fail: corrupt finished finished; "
            "data_corruption of 0; agent_lost of 0\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "fail: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "unknown: not_run, 0 iterations, nan ns, slowest -1, no arrivals, no outcomes\n"
            "2 journals\n");
}

// Errors of a warm-up stand before the samples of their visit.
TEST(Failover, WrongDataBelongToTheirRepetition) {
  std::string wrong;
  AppendTo(wrong, measure::WrongRecord{0, true, 0, 1, "3", "4"});
  coordinator::FailoverReport failover = FailoverReportOf(
      {Gone(0), In(1, 1), In(1, 2)},
      {"", RowsOfBoth(0) + wrong + Rows(0, 4, 1, 1), RowsOfBoth(0) + Rows(0, 4, 1)});
  failover.replicated = {kIdentity, EncodeMeasurement(Over(1))};
  EXPECT_EQ(Conclude(failover, 2),
            "exit code 1\n"
            "0123abcd of 2026-01-02T03:04:05Z fail: killed corrupt finished; "
            "data_corruption of 1; agent_lost of 0\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "fail: interrupted, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "2 journals\n");
}

TEST(Failover, ALossBeforeStaysAFinding) {
  measure::Measurement known = Over(1);
  known.stopped_by[0][1] = "lost";
  known.interruptions.push_back(
      {.case_index = 1,
       .judgement = verdict::Judge({In(1, 0), In(1, 1), In(1, 2).Signalled(SIGSEGV)}, 5)});
  coordinator::FailoverReport failover = FailoverReportOf(
      {Gone(0), In(0, 1), In(0, 2)}, {"", Rows(0, 4) + Rows(1, 3), Rows(0, 4) + Rows(1, 3)});
  failover.replicated = {kIdentity, EncodeMeasurement(known)};
  EXPECT_EQ(Conclude(failover, 2),
            "exit code 1\n"
            "0123abcd of 2026-01-02T03:04:05Z fail: hung hung crashed; "
            "rank_crashed of 2; agent_lost of 0\n"
            "unknown: iterations, 4 iterations, 10000 ns, slowest 1, no arrivals\n"
            "fail: lost, 3 iterations, 10000 ns, slowest 1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "unknown: lost, 0 iterations, nan ns, slowest -1, no arrivals\n"
            "2 journals\n");
}

}  // namespace
}  // namespace lockstep::bench::harness
