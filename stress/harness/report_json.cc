// The verdicts of a run as JSON, for --verdicts. Enumerators go out by name.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/named_members.h"
#include "core/base/version.h"
#include "core/journal/journal.h"
#include "core/journal/purpose.h"
#include "stress/harness/race_table.h"
#include "stress/harness/report.h"

namespace lockstep::stress::harness {
namespace {

using Json = nlohmann::ordered_json;

Json Rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// By the specification the world has a name, others have that of the scenario.
std::string CommunicatorName(const scenario::Scenario& scenario, std::uint16_t communicator) {
  if (communicator == 0) return "world";
  if (const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload)) {
    const std::vector<scenario::ScriptCommunicator> made = scenario::MadeCommunicators(*script);
    if (communicator <= made.size()) return made[communicator - 1u].name;
  }
  return "communicator " + std::to_string(communicator);
}

Json WaitingIn(const scenario::Scenario& scenario, const journal::JournalEvent& open) {
  const bool data = open.collective != collective::Collective::kBarrier;
  return {{"communicator", CommunicatorName(scenario, open.communicator)},
          {"sequence", open.sequence},
          {"collective", collective::NameOf(open.collective)},
          {"type", data ? Json(collective::NameOf(open.type)) : Json()},
          {"count", data ? Json(open.count) : Json()},
          {"root", collective::InfoOf(open.collective).rooted ? Json(open.root) : Json()}};
}

Json OutcomeJson(const cases::StressCase& stress_case, const cases::CaseResult& result,
                 std::size_t rank) {
  const verdict::RankOutcome& outcome = result.judgement.outcomes[rank];
  const verdict::RankEvidence& evidence = result.facts.evidence[rank];
  const std::optional<workloads::ProgramReport>& report = result.facts.reports[rank];
  const auto& events = evidence.journal.events;
  Json json = {{"rank", outcome.rank}, {"outcome", verdict::NameOf(outcome.outcome)}};
  json["where"] = report           ? report->where
                  : events.empty() ? std::string("start")
                                   : std::string(journal::NameOf(events.back().phase));
  std::int64_t iteration = report ? report->iteration : -1;
  const std::optional<journal::JournalEvent> open = journal::OpenOperation(evidence.journal);
  if (open)
    iteration = std::max<std::int64_t>(iteration, journal::UnpackAnnotation(open->value).iteration);
  json["iteration"] = iteration >= 0 ? Json(iteration) : Json();
  json["waiting_in"] = open ? WaitingIn(stress_case.scenario, *open) : Json();
  json["seconds"] = Rounded(evidence.seconds_silent);
  if (report && !report->status.ok()) json["error"] = report->status.message();
  if (report && !report->figures.empty()) json["figures"] = report->figures;
  return json;
}

Json FindingJson(const scenario::Scenario& scenario, const verdict::Finding& finding) {
  Json json = {{"cause", finding.cause.name()},
               {"culprits", finding.culprits},
               {"certainty", finding.proved ? "proved" : "suspected"}};
  if (finding.operation) {
    json["communicator"] = CommunicatorName(scenario, finding.operation->communicator);
    json["sequence"] = finding.operation->sequence;
  }
  json["headline"] = finding.headline.text();
  json["message"] = finding.message;
  json["remedy"] = finding.remedy;
  return json;
}

Json FaultsJson(const cases::StressCase& stress_case, const cases::CaseFacts& facts) {
  Json faults = Json::array();
  for (std::size_t i = 0; i < stress_case.faults.size() && i < facts.fired.size(); ++i) {
    Json fault = {{"fault", faults::Describe(stress_case.faults[i])},
                  {"fired", bool{facts.fired[i]}}};
    if (i < facts.notes.size() && !facts.notes[i].empty()) fault["note"] = facts.notes[i];
    faults.push_back(std::move(fault));
  }
  return faults;
}

Json RecoveryJson(const cases::Recovery& recovery) {
  const auto seconds = [](double value) { return std::isfinite(value) ? Rounded(value) : Json(); };
  return {{"mode", scenario::NameOf(recovery.mode)},
          {"outcome", scenario::NameOf(recovery.outcome)},
          LOCKSTEP_PAIRS(recovery, generation, lost, members, first_iteration),
          {"detect_seconds", seconds(recovery.detect_seconds)},
          {"abort_seconds", seconds(recovery.abort_seconds)},
          {"rebuild_seconds", seconds(recovery.rebuild_seconds)},
          {"resume_seconds", seconds(recovery.resume_seconds)}};
}

Json CaseJson(const cases::StressCase& stress_case, const std::string& backend,
              const cases::CaseResult& result) {
  Json outcomes = Json::array();
  for (std::size_t rank = 0; rank < result.judgement.outcomes.size(); ++rank) {
    outcomes.push_back(OutcomeJson(stress_case, result, rank));
  }
  Json findings = Json::array();
  for (const verdict::Finding& finding : result.judgement.findings) {
    findings.push_back(FindingJson(stress_case.scenario, finding));
    for (const verdict::Finding& general : finding.evidence) {
      findings.push_back(FindingJson(stress_case.scenario, general));
    }
  }
  Json recoveries = Json::array();
  for (const cases::Recovery& recovery : result.facts.recoveries) {
    recoveries.push_back(RecoveryJson(recovery));
  }
  const auto& detected = result.facts.detected_after_seconds;
  return {{"name", stress_case.scenario.name},
          {"backend", backend},
          {"ranks", stress_case.scenario.ranks},
          {"seed", stress_case.seed},
          {"verdict", verdict::NameOf(result.verdict)},
          {"why", result.why},
          {"outcomes", std::move(outcomes)},
          {"findings", std::move(findings)},
          {"detected_after_seconds", detected ? Rounded(*detected) : Json()},
          {"recoveries", std::move(recoveries)},
          {"faults_fired", std::count(result.facts.fired.begin(), result.facts.fired.end(), true)},
          {"faults", FaultsJson(stress_case, result.facts)},
          {"seconds", Rounded(result.facts.seconds)}};
}

Json RaceJson(const RaceRow& row) {
  return {LOCKSTEP_PAIRS(row, pattern, guard, rounds, corrupt_rounds, overlapped_rounds),
          {"first_element", row.first_element ? Json(*row.first_element) : Json()},
          {"round_us", row.round_us},
          {"extra_us", row.extra_us ? Json(*row.extra_us) : Json()}};
}

}  // namespace

std::string FormatStressJson(const StressOutcome& outcome) {
  Json cases = Json::array();
  for (std::size_t i = 0; i < outcome.results.size(); ++i) {
    cases.push_back(CaseJson(outcome.cases[i], outcome.backend, outcome.results[i]));
  }
  Json json = {{"schema", 1}, {"lockstep", ThisVersionText()}, {"cases", std::move(cases)}};
  const std::vector<RaceRow> rows = RaceRowsOf(outcome.cases, outcome.results);
  for (const RaceRow& row : rows) json["stream_races"].push_back(RaceJson(row));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::stress::harness
