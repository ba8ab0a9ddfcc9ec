// The run as the agent that takes over knows it: samples and journals that the agents kept, judged
// as the scheduler would, with the lost ranks left out of the figures.
#include "bench/harness/failover.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "bench/measure/lost_case.h"
#include "bench/measure/run_record.h"
#include "bench/measure/sample_book.h"
#include "bench/measure/summarize.h"
#include "bench/measure/visit_figure.h"
#include "core/coordinator/machine_facts.h"
#include "core/verdict/judge.h"
#include "core/verdict/lost_hosts.h"

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

// The rows of those who are heard of, with the figures of their rounds: the first one calibrates.
measure::CaseBook OfTheLiving(const measure::CaseBook& book, const plan::PlannedCase& planned,
                              const std::vector<int>& living, double ns_per_tick) {
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
  const bool by_mean = measure::CountsByMean(planned);
  for (const auto& [round, durations] : rounds) {
    left.round_medians_ns.push_back(measure::FigureOfVisit(by_mean, durations));
  }
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

void ConcludeAfter(const coordinator::FailoverReport& failover, const plan::Plan& plan,
                   const control::LaunchContext& context, results::store::Run& run,
                   const std::function<void(const measure::SampleBook&)>& judge) {
  const std::vector<int> living = LivingOf(failover);
  measure::SampleBook book(plan.world_size, plan.cases.size(),
                           ScaleFrom(failover.data[static_cast<std::size_t>(failover.successor)]));
  for (const int rank : living) book.Add(rank, failover.data[static_cast<std::size_t>(rank)]);
  measure::Measurement measurement;
  measurement.terminated = true;
  measure::Interruption interruption;
  std::vector<verdict::RankEvidence> evidence = failover.evidence;
  verdict::ForgiveBriefStops(evidence, plan.deadline_seconds);
  interruption.judgement = verdict::Judge(evidence, plan.deadline_seconds);
  verdict::NameLostHosts(failover.places, evidence, interruption.judgement);
  interruption.case_index = measure::LostCase(evidence, interruption.judgement);
  std::vector<std::string>& stopped_by = measurement.stopped_by.emplace_back();
  std::vector<results::store::Summary> summaries;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const measure::CaseBook left =
        OfTheLiving(book.Book(0, i), plan.cases[i], living, book.scale().ns_per_tick);
    const bool lost = interruption.case_index == i;
    stopped_by.emplace_back(lost ? "lost" : left.complete_rows() > 0 ? "interrupted" : "not_run");
    results::store::Summary& summary = summaries.emplace_back(measure::Summarize(
        left, plan.cases[i], plan, {}, book.scale().ns_per_tick, stopped_by.back()));
    if (summary.max_rank >= 0)
      summary.max_rank = living[static_cast<std::size_t>(summary.max_rank)];
  }
  measurement.interruptions.push_back(std::move(interruption));
  run.ns_per_tick = book.scale().ns_per_tick;
  run.origin_ticks = book.scale().origin_ticks;
  run.cases = measure::CaseRecords(plan, book, {}, measurement);
  for (std::size_t i = 0; i < run.cases.size(); ++i) run.cases[i].summary = summaries[i];
  // Who measured the clocks of the hosts is lost: moments of two of them do not compare.
  for (results::store::CaseRecord& record : run.cases) {
    if (!HaveOneClock(failover.agents)) record.arrivals.reset();
  }
  run.judgement = measure::LaunchJudgement(run.cases, measurement, plan.world_size);
  judge(book);
  run.verdict = run.judgement.verdict;
  run.complete = false;
  run.summary_line = measure::SummaryLine(run, plan);
  for (const int rank : living) {
    const journal::Journal& journal = failover.journals[static_cast<std::size_t>(rank)];
    run.history.push_back({rank, failover.lifetime, journal.missed, journal.events});
  }
  run.environment = coordinator::MachineFacts(failover.agents, context, "");
  run.environment.emplace_back("launch/successor", fmt::format("{}", failover.successor));
}

}  // namespace lockstep::bench::harness
