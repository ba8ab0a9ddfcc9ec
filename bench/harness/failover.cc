// The run as the agent that takes over knows it: samples and journals that the agents kept, judged
// as the scheduler would, with the lost ranks left out of the figures.
#include "bench/harness/failover.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bench/measure/lost_case.h"
#include "bench/measure/measurement_codec.h"
#include "bench/measure/run_record.h"
#include "bench/measure/sample_book.h"
#include "bench/measure/summarize.h"
#include "bench/measure/visit_figure.h"
#include "core/base/print_stderr.h"
#include "core/coordinator/machine_facts.h"
#include "core/verdict/judge.h"
#include "core/verdict/lost_hosts.h"
#include "core/verdict/wording.h"

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

// Living ranks whose records are not all there.
std::vector<int> CutOf(const coordinator::FailoverReport& failover) {
  std::vector<int> cut = LivingOf(failover);
  std::erase_if(cut, [&](int rank) { return !failover.data_cut[static_cast<std::size_t>(rank)]; });
  return cut;
}

// What was replicated, record by record, if it is of this plan.
measure::Measurement KnownBefore(const coordinator::FailoverReport& failover, std::size_t cases) {
  const auto is_of_plan = [cases](const measure::Measurement& state) {
    for (std::size_t i = 0; i < state.ends.size(); ++i) {
      if (state.stopped_by[i].size() != cases || state.ends[i].data.size() != cases) return false;
    }
    return true;
  };
  measure::Measurement known;
  for (const std::string& record : failover.replicated) {
    auto state = measure::DecodeMeasurement(record);
    if (!state || !is_of_plan(*state)) continue;
    std::ranges::move(state->stopped_by, std::back_inserter(known.stopped_by));
    std::ranges::move(state->ends, std::back_inserter(known.ends));
    std::ranges::move(state->interruptions, std::back_inserter(known.interruptions));
  }
  return known;
}

// A rank's records by the repetition that their rounds belong to. Parts and located errors follow
// their sample; errors of a warm-up precede those of their visit.
std::vector<std::string> ByRepetition(const std::string& bytes, std::size_t repetitions,
                                      const std::vector<measure::RepetitionEnd>& ends) {
  std::vector<std::string> parts(repetitions);
  std::size_t current = 0;
  std::string of_warmup;
  const auto turn_to = [&](std::uint32_t round) {
    const auto over = std::ranges::count_if(
        ends, [&](const measure::RepetitionEnd& end) { return end.rounds <= round; });
    current = std::min(static_cast<std::size_t>(over), repetitions - 1);
    parts[current] += std::exchange(of_warmup, {});
  };
  measure::RecordHandlers handlers;
  handlers.sample = [&](const measure::SampleRecord& record) {
    turn_to(record.round);
    AppendTo(parts[current], record);
  };
  handlers.batch = [&](const measure::BatchRecord& record) {
    turn_to(record.round);
    AppendTo(parts[current], record);
  };
  handlers.wrong = [&](const measure::WrongRecord& record) {
    AppendTo(record.warmup ? of_warmup : parts[current], record);
  };
  handlers.parts = [&](const measure::PartsRecord& record) { AppendTo(parts[current], record); };
  measure::ForEachRecord(bytes, handlers);
  parts.back() += of_warmup;
  return parts;
}

// Of those who are heard of: what each left of each repetition that began. All ranks' data had been
// compared when a repetition was over.
measure::SampleBook BookOf(const coordinator::FailoverReport& failover, const plan::Plan& plan,
                           const std::vector<int>& living, std::size_t repetitions,
                           const std::vector<measure::RepetitionEnd>& ends) {
  measure::SampleBook book(plan.world_size, plan.cases.size(),
                           ScaleFrom(failover.data[static_cast<std::size_t>(failover.successor)]));
  std::vector<std::vector<std::string>> records;
  for (const int rank : living) {
    records.push_back(
        ByRepetition(failover.data[static_cast<std::size_t>(rank)], repetitions, ends));
  }
  for (std::size_t repetition = 0; repetition < repetitions; ++repetition) {
    if (repetition > 0) book.BeginRepetition();
    for (std::size_t i = 0; i < living.size(); ++i) book.Add(living[i], records[i][repetition]);
    if (repetition >= ends.size()) continue;
    for (std::size_t i = 0; i < plan.cases.size(); ++i) {
      const measure::DataChecks& data = ends[repetition].data[i];
      book.Current(i).checked = data.checked;
      book.Current(i).wrong_elements = data.wrong_elements;
      book.Current(i).wrong.assign(data.wrong.begin(), data.wrong.end());
    }
  }
  return book;
}

// Why the cases of the repetition that ran have no more rounds. A case that was lost stays lost. Of
// one without records it is known that it was not run only if a rank lacks them that kept all.
std::vector<std::string> StoppedBy(const measure::SampleBook& book, const plan::Plan& plan,
                                   const std::vector<int>& living, const std::vector<int>& cut,
                                   const measure::Measurement& measurement) {
  std::vector<std::string> stopped_by;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto& rows = book.Book(book.repetitions() - 1, i).ranks;
    const auto has_begun = [&](int rank) {
      return !rows[static_cast<std::size_t>(rank)].entry.empty();
    };
    const bool begun = std::ranges::all_of(living, has_begun);
    const bool known = std::ranges::any_of(living, [&](int rank) {
      return !has_begun(rank) && std::ranges::find(cut, rank) == cut.end();
    });
    const bool lost = std::ranges::count(measurement.interruptions, std::optional(i),
                                         &measure::Interruption::case_index) > 0;
    stopped_by.emplace_back(lost ? "lost" : begun ? "interrupted" : known ? "not_run" : "not_kept");
  }
  return stopped_by;
}

}  // namespace

void ConcludeAfter(const coordinator::FailoverReport& failover, const plan::Plan& plan,
                   int repetitions, const control::LaunchContext& context, results::store::Run& run,
                   const std::function<void(const measure::SampleBook&)>& judge) {
  const std::vector<int> living = LivingOf(failover);
  const std::vector<int> cut = CutOf(failover);
  measure::Measurement measurement = KnownBefore(failover, plan.cases.size());
  measurement.terminated = true;
  const std::size_t over = measurement.ends.size();
  const std::size_t begun = std::min(over + 1, static_cast<std::size_t>(repetitions));
  const measure::SampleBook book = BookOf(failover, plan, living, begun, measurement.ends);
  measure::Interruption interruption{.repetition = book.repetitions() - 1,
                                     .lifetime = failover.lifetime};
  std::vector<verdict::RankEvidence> evidence = failover.evidence;
  verdict::ForgiveBriefStops(evidence, plan.deadline_seconds);
  interruption.judgement = verdict::Judge(evidence, plan.deadline_seconds);
  verdict::NameLostHosts(failover.places, evidence, interruption.judgement);
  // Once all repetitions are over, there is no case that could be lost.
  if (over < begun) interruption.case_index = measure::LostCase(evidence, interruption.judgement);
  measurement.interruptions.push_back(std::move(interruption));
  if (over < begun) {
    measurement.stopped_by.push_back(StoppedBy(book, plan, living, cut, measurement));
  }
  const double ns_per_tick = book.scale().ns_per_tick;
  run.ns_per_tick = ns_per_tick;
  run.origin_ticks = book.scale().origin_ticks;
  const auto summarize = [&](const measure::CaseBook& rows, std::size_t i,
                             const std::string& stopped_by) {
    const measure::CaseBook left = OfTheLiving(rows, plan.cases[i], living, ns_per_tick);
    results::store::Summary summary =
        measure::Summarize(left, plan.cases[i], plan, {}, ns_per_tick, stopped_by);
    if (summary.max_rank >= 0)
      summary.max_rank = living[static_cast<std::size_t>(summary.max_rank)];
    return summary;
  };
  run.cases = measure::CaseRecordsBy(summarize, plan, book, measurement);
  for (results::store::CaseRecord& record : run.cases) {
    // The lost rank may have been the slowest.
    if (record.judgement.verdict == verdict::Verdict::kPass)
      record.judgement.verdict = verdict::Verdict::kUnknown;
    // Who measured the clocks of the hosts is lost: moments of two of them do not compare.
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
  if (cut.empty()) return;
  run.environment.emplace_back("launch/records_cut", fmt::format("{}", fmt::join(cut, ",")));
  PrintStderr(
      "{}: note: not all records of {} were kept (1 GiB a rank) or came in time; "
      "what came later is unknown\n",
      run.name, verdict::FormatRanks(cut));
}

}  // namespace lockstep::bench::harness
