// The run as the agent that takes over knows it: samples and journals that the agents kept, judged
// as the scheduler would, with the lost ranks left out of the figures.
#include "bench/harness/failover.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "bench/measure/lost_case.h"
#include "bench/measure/run_record.h"
#include "bench/measure/sample_book.h"
#include "bench/measure/summarize.h"
#include "core/coordinator/machine_facts.h"
#include "core/stats/stats.h"
#include "core/verdict/judge.h"
#include "core/verdict/lost_hosts.h"
#include "results/report/report.h"
#include "results/store/partial_path.h"
#include "results/store/run_file.h"
#include "results/store/store.h"

namespace lockstep::bench::harness {
namespace {

// This host's ticks as nanoseconds since the first sample of the successor.
TickScale ScaleFrom(const std::string& outbox_bytes) {
  TickScale scale = CalibrateTicks();
  measure::RecordHandlers handlers;
  bool first = true;
  handlers.sample = [&](const measure::SampleRecord& record) {
    if (first) scale.origin_ticks = record.entry;
    first = false;
  };
  handlers.batch = [](const measure::BatchRecord&) {};
  handlers.wrong = [](const measure::WrongRecord&) {};
  handlers.parts = [](const measure::PartsRecord&) {};
  measure::ForEachRecord(outbox_bytes, handlers);
  return scale;
}

// The rows of those who are heard of, with the medians of their rounds: the first one calibrates.
measure::CaseBook OfTheLiving(const measure::CaseBook& book, const std::vector<int>& living,
                              double ns_per_tick) {
  measure::CaseBook left;
  left.checked = book.checked;
  left.wrong_elements = book.wrong_elements;
  for (const int rank : living) left.ranks.push_back(book.ranks[static_cast<std::size_t>(rank)]);
  std::map<std::int32_t, std::vector<double>> rounds;
  for (std::int64_t row = 0; row < left.complete_rows(); ++row) {
    rounds[left.ranks.front().round[static_cast<std::size_t>(row)]].push_back(
        left.DurationNs(row, std::vector<double>(living.size(), ns_per_tick)));
  }
  if (rounds.size() > 1) rounds.erase(rounds.begin());
  for (const auto& [round, durations] : rounds)
    left.round_medians_ns.push_back(stats::Median(durations));
  return left;
}

bool HaveOneClock(const std::vector<control::AgentInfo>& agents) {
  return std::ranges::all_of(agents, [&](const control::AgentInfo& agent) {
    return agent.boot_id == agents.front().boot_id;
  });
}

std::vector<int> LivingOf(const coordinator::FailoverReport& failover) {
  std::vector<int> living;
  for (const verdict::RankEvidence& rank : failover.evidence) {
    if (rank.state != verdict::ProcessState::kLost) living.push_back(rank.rank);
  }
  return living;
}

}  // namespace

Failover::Failover(std::string name, const BenchOptions& options,
                   const control::LaunchContext& context, plan::Plan plan, std::string command_line)
    : name_(std::move(name)),
      options_(options),
      context_(context),
      plan_(std::move(plan)),
      command_line_(std::move(command_line)) {}

results::store::Run Failover::Conclude(const coordinator::FailoverReport& failover) const {
  const std::vector<int> living = LivingOf(failover);
  measure::SampleBook book(plan_.world_size, plan_.cases.size(),
                           ScaleFrom(failover.data[static_cast<std::size_t>(failover.successor)]));
  for (const int rank : living) book.Add(rank, failover.data[static_cast<std::size_t>(rank)]);
  measure::Measurement measurement;
  measurement.terminated = true;
  measure::Interruption interruption;
  interruption.judgement = verdict::Judge(failover.evidence, plan_.deadline_seconds);
  verdict::NameLostHosts(failover.places, failover.evidence, interruption.judgement);
  interruption.case_index = measure::LostCase(failover.evidence, interruption.judgement);
  std::vector<std::string>& stopped_by = measurement.stopped_by.emplace_back();
  std::vector<results::store::Summary> summaries;
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
    const measure::CaseBook left = OfTheLiving(book.Book(0, i), living, book.scale().ns_per_tick);
    const bool lost = interruption.case_index == i;
    stopped_by.emplace_back(lost ? "lost" : left.complete_rows() > 0 ? "interrupted" : "not_run");
    results::store::Summary& summary = summaries.emplace_back(measure::Summarize(
        left, plan_.cases[i], plan_, {}, book.scale().ns_per_tick, stopped_by.back()));
    if (summary.max_rank >= 0)
      summary.max_rank = living[static_cast<std::size_t>(summary.max_rank)];
  }
  measurement.interruptions.push_back(std::move(interruption));
  results::store::Run run = measure::NewRun(name_, plan_);
  if (!failover.replicated.empty()) results::store::Identify(failover.replicated.front(), run);
  run.command_line = command_line_;
  run.ns_per_tick = book.scale().ns_per_tick;
  run.origin_ticks = book.scale().origin_ticks;
  run.cases = measure::CaseRecords(plan_, book, {}, measurement);
  for (std::size_t i = 0; i < run.cases.size(); ++i) run.cases[i].summary = summaries[i];
  // Who measured the clocks of the hosts is lost: moments of two of them do not compare.
  for (results::store::CaseRecord& record : run.cases) {
    if (!HaveOneClock(failover.agents)) record.arrivals.reset();
  }
  run.judgement = measure::LaunchJudgement(run.cases, measurement, plan_.world_size);
  run.verdict = run.judgement.verdict;
  run.complete = false;
  run.exit_code = static_cast<int>(verdict::ExitCodeOf(run.verdict));
  run.summary_line = measure::SummaryLine(run);
  for (const int rank : living) {
    const journal::Journal& journal = failover.journals[static_cast<std::size_t>(rank)];
    run.history.push_back({rank, failover.lifetime, journal.missed, journal.events});
  }
  run.environment = coordinator::MachineFacts(failover.agents, context_, "");
  run.environment.emplace_back("launch/successor", fmt::format("{}", failover.successor));
  return run;
}

ExitCode Failover::operator()(const coordinator::FailoverReport& failover) const {
  results::store::Run run = Conclude(failover);
  results::store::RunFile file(options_.output.empty()
                                   ? results::store::DefaultRunPath(run, "results/runs")
                                   : options_.output);
  if (!failover.whole) file.MoveTo(results::store::PartialPath(file.path(), failover.successor));
  const Status stored = file.Store(run);
  if (!file.older().empty()) {
    fmt::print(stderr, "{}: note: what the coordinator had stored is in {}\n", name_, file.older());
  }
  if (failover.whole && options_.format == measure::ReportFormat::kTable) {
    fmt::print("{}", results::report::FormatTable(run));
    if (file.saved()) fmt::print("\nresult file: {}\n", file.path());
    std::fflush(stdout);
  }
  fmt::print(stderr,
             "{}: the coordinator (rank 0's agent) is lost; rank {}'s agent took its place: {}\n",
             name_, failover.successor,
             stored.ok() ? fmt::format("{}; what is left is in {}", run.summary_line, file.path())
                         : stored.message());
  return stored.ok() ? verdict::ExitCodeOf(run.verdict) : ExitCodeOf(stored.code());
}

}  // namespace lockstep::bench::harness
