// Copies a case into the records of the result file: settings, expectation, judgement, recoveries,
// evidence.
#include "stress/harness/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/run_id.h"
#include "core/base/utc.h"
#include "core/coordinator/machine_facts.h"
#include "results/report/trials.h"
#include "results/store/evidence_records.h"

namespace lockstep::stress::harness {
namespace {

using Json = nlohmann::ordered_json;

// FNV-1a, 64 bits.
std::string HashOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return fmt::format("{:016x}", hash);
}

std::string FaultsOf(const cases::StressCase& stress_case, const cases::CaseResult& result) {
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < stress_case.faults.size(); ++i) {
    faults.push_back(faults::Describe(stress_case.faults[i]) +
                     (result.facts.fired[i] ? "" : " (did not fire)"));
    const std::vector<std::string>& notes = result.facts.notes;
    if (i < notes.size() && !notes[i].empty()) faults.back() += fmt::format(" [{}]", notes[i]);
  }
  return fmt::format("{}", fmt::join(faults, "; "));
}

results::store::Trial TrialOf(const cases::StressCase& stress_case, const std::string& backend,
                              const cases::CaseResult& result) {
  results::store::Trial trial;
  const scenario::Scenario& scenario = stress_case.scenario;
  std::vector<std::string> outcomes;
  // A scenario without faults that expects nothing is a healthy run.
  const auto ranks = static_cast<std::size_t>(scenario.ranks);
  if (scenario.expect.empty() && scenario.faults.empty()) outcomes.assign(ranks, "finished");
  if (const scenario::Expectation* expectation = cases::ExpectationFor(scenario, backend)) {
    for (const auto& allowed : expectation->ranks) {
      outcomes.push_back(fmt::format("{}", fmt::join(allowed, "|")));
    }
    if (expectation->cause) trial.expected_cause = verdict::NameOf(*expectation->cause);
    trial.expected_culprits = expectation->culprits;
  }
  trial.expected_outcomes = fmt::format("{}", fmt::join(outcomes, ","));
  trial.faults = static_cast<std::int32_t>(result.facts.fired.size());
  trial.faults_fired = static_cast<std::int32_t>(std::ranges::count(result.facts.fired, true));
  trial.why = result.why;
  if (const auto& detected = result.facts.detected_after_seconds) {
    trial.detected_after_seconds = *detected;
  }
  trial.seconds = result.facts.seconds;
  const auto& findings = result.judgement.findings;
  if (!findings.empty() && findings.front().operation) {
    trial.communicator = findings.front().operation->communicator;
    trial.sequence = static_cast<std::int64_t>(findings.front().operation->sequence);
  }
  return trial;
}

results::store::RecoveryRecord RecordOf(const cases::Recovery& recovery) {
  results::store::RecoveryRecord record;
  record.mode = scenario::NameOf(recovery.mode);
  record.outcome = scenario::NameOf(recovery.outcome);
  const auto& findings = recovery.failure.findings;
  if (!findings.empty()) record.cause = findings.front().cause.name();
  record.generation = recovery.generation;
  record.lost = recovery.lost;
  record.members = recovery.members;
  record.first_iteration = recovery.first_iteration;
  record.detect_seconds = recovery.detect_seconds;
  record.abort_seconds = recovery.abort_seconds;
  record.rebuild_seconds = recovery.rebuild_seconds;
  record.resume_seconds = recovery.resume_seconds;
  return record;
}

results::store::CaseRecord RecordOf(const cases::StressCase& stress_case,
                                    const std::string& backend, const cases::CaseResult& result) {
  results::store::CaseRecord record;
  record.name = stress_case.label;
  record.backend = backend;
  record.device = "host";
  record.ranks = stress_case.scenario.ranks;
  record.samples.ranks = record.ranks;
  record.summary.stopped_by = result.facts.cut_short.empty() ? "over" : "cut_short";
  record.judgement = result.judgement;
  record.judgement.verdict = result.verdict;
  record.trial = TrialOf(stress_case, backend, result);
  for (const cases::Recovery& recovery : result.facts.recoveries) {
    record.recoveries.push_back(RecordOf(recovery));
  }
  record.settings = {{"scenario", stress_case.scenario.name},
                     {"seed", fmt::format("{}", stress_case.seed)},
                     {"faults", FaultsOf(stress_case, result)}};
  for (const auto& report : result.facts.reports) {
    if (report) record.summary.checked_elements += report->checked;
  }
  for (std::size_t rank = 0; rank < result.facts.reports.size(); ++rank) {
    const auto& report = result.facts.reports[rank];
    if (!report || report->figures.empty()) continue;
    std::string text;
    for (const auto& [name, value] : report->figures) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    }
    record.settings.emplace_back(fmt::format("figures.{}", rank), text);
  }
  return record;
}

// Of a rank over all cases: the first outcome that is not `finished`.
verdict::Judgement LaunchJudgement(const std::vector<results::store::CaseRecord>& cases,
                                   verdict::Verdict verdict) {
  verdict::Judgement launch;
  launch.verdict = verdict;
  int ranks = 0;
  for (const results::store::CaseRecord& record : cases) ranks = std::max(ranks, record.ranks);
  launch.outcomes.resize(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    launch.outcomes[static_cast<std::size_t>(rank)].rank = rank;
  }
  for (const results::store::CaseRecord& record : cases) {
    if (record.judgement.verdict == verdict::Verdict::kPass) continue;
    for (const verdict::RankOutcome& rank : record.judgement.outcomes) {
      verdict::RankOutcome& known = launch.outcomes[static_cast<std::size_t>(rank.rank)];
      if (known.outcome == verdict::Outcome::kFinished) known = rank;
    }
    const auto& findings = record.judgement.findings;
    launch.findings.insert(launch.findings.end(), findings.begin(), findings.end());
  }
  return launch;
}

}  // namespace

results::store::Run NewStressRun(const StressOptions& options, const cases::Selection& selection,
                                 const std::string& command_line) {
  results::store::Run run;
  run.name = "stress";
  run.id = NewRunId();
  run.started_at = UtcNow();
  run.command_line = command_line;
  run.seed = options.seed;
  const TickScale scale = CalibrateTicks();
  run.ns_per_tick = scale.ns_per_tick;
  run.origin_ticks = scale.origin_ticks;
  Json cases = Json::array();
  for (const cases::StressCase& stress_case : selection.cases) {
    cases.push_back({{"name", stress_case.scenario.name},
                     {"seed", stress_case.seed},
                     {"ranks", stress_case.scenario.ranks},
                     {"text", stress_case.text}});
  }
  run.plan_text = Json({{"backend", options.backend},
                        {"deadline_seconds", options.deadline_seconds},
                        {"cases", std::move(cases)}})
                      .dump(-1, ' ', false, Json::error_handler_t::replace);
  run.plan_hash = HashOf(run.plan_text);
  return run;
}

void Conclude(const std::vector<control::AgentInfo>& agents, const control::LaunchContext& context,
              StressOutcome& outcome, results::store::Run& run) {
  run.environment = coordinator::MachineFacts(agents, context, outcome.worker_facts);
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    cases::CaseResult& result = outcome.results[i];
    run.cases.push_back(RecordOf(outcome.cases[i], outcome.backend, result));
    run.duration_seconds += result.facts.seconds;
    for (std::size_t rank = 0; rank < result.facts.journals.size(); ++rank) {
      journal::Journal& journal = result.facts.journals[rank];
      run.history.push_back(
          {static_cast<int>(rank), static_cast<int>(i), journal.missed, std::move(journal.events)});
    }
    // Its findings are of several communicators, and the evidence of the last one alone.
    if (!result.facts.recoveries.empty()) continue;
    const auto index = static_cast<std::int32_t>(i);
    results::store::AddEvidence({index, index, result.facts.deadline_seconds},
                                result.facts.evidence, run);
  }
  run.complete = !outcome.terminated;
  ConcludeCases(outcome.cases.size(), run);
}

void ConcludeCases(std::size_t planned, results::store::Run& run) {
  run.verdict = results::report::VerdictOf(run.cases, planned);
  run.judgement = LaunchJudgement(run.cases, run.verdict);
  run.summary_line = results::report::SummaryLineOf(run.cases, planned);
  run.exit_code = static_cast<int>(verdict::ExitCodeOf(run.verdict));
}

}  // namespace lockstep::stress::harness
