// One judge, one answer: what a run found stands in its file, and that is told. Judging again needs
// the run's evidence, rules and scenario, of which older files hold a part only. So another
// judgement answers other questions ("what if the rules were NCCL's?") and never overrules the run.
#include "cli/diagnose/cases.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "results/store/evidence_records.h"
#include "results/store/lifetimes.h"
#include "stress/cases/assess.h"
#include "stress/scenario/scenario.h"

namespace lockstep::cli::diagnose {
namespace {

using Json = nlohmann::json;

struct Planned {
  std::string name;
  std::string text;
  int ranks = 0;
};

std::optional<Planned> PlannedOf(const Json& json) {
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("name") || !is_text("text")) return std::nullopt;
  if (!json.contains("ranks") || !json["ranks"].is_number_integer()) return std::nullopt;
  const auto ranks = json["ranks"].get<std::int64_t>();
  if (ranks < 1 || ranks > stress::scenario::kMaxScenarioRanks) return std::nullopt;
  return Planned{json["name"].get<std::string>(), json["text"].get<std::string>(),
                 static_cast<int>(ranks)};
}

std::string NameOf(const results::store::CaseRecord& record) {
  for (const auto& [key, value] : record.settings) {
    if (key == "scenario") return value;
  }
  return "";
}

// The scenarios of a stored run, read again from its plan: with them its cases can be judged again.
// One a case of the run; none where the plan lacks it, or has it in words of another version.
std::vector<std::optional<stress::scenario::Scenario>> ScenariosOf(const results::store::Run& run) {
  const Json plan = Json::parse(run.plan_text, nullptr, false);
  std::map<std::pair<std::string, int>, std::string> texts;  // by name and ranks
  if (plan.is_object() && plan.contains("cases") && plan["cases"].is_array()) {
    for (const Json& json : plan["cases"]) {
      const std::optional<Planned> planned = PlannedOf(json);
      if (planned) texts[{planned->name, planned->ranks}] = planned->text;
    }
  }
  std::vector<std::optional<stress::scenario::Scenario>> scenarios;
  for (const results::store::CaseRecord& record : run.cases) {
    std::optional<stress::scenario::Scenario>& scenario = scenarios.emplace_back();
    const auto text = texts.find({NameOf(record), record.ranks});
    if (text == texts.end()) continue;
    Result<stress::scenario::Scenario> parsed =
        stress::scenario::ParseScenario(text->second, record.name, {.ranks = record.ranks});
    if (parsed.ok()) scenario = *std::move(parsed);
  }
  return scenarios;
}

StoredCase CaseOf(const results::store::Run& run, results::store::Lifetime lifetime,
                  const verdict::Setting& setting) {
  StoredCase made{.lifetime = lifetime.number, .evidence = {}, .setting = setting};
  made.evidence = results::store::EvidenceOf(run, lifetime.number);
  made.whole = !made.evidence.empty();
  if (!made.whole) made.evidence = std::move(lifetime.evidence);
  for (const results::store::EvidenceRecord& record : run.evidence) {
    if (record.lifetime == lifetime.number) made.setting.deadline_seconds = record.deadline_seconds;
  }
  return made;
}

// Every case of a stress run has workers of its own, whose number is that of the case.
std::vector<StoredCase> StressCasesOf(const results::store::Run& run,
                                      std::vector<results::store::Lifetime> lifetimes) {
  std::map<int, results::store::Lifetime> by_number;
  for (results::store::Lifetime& lifetime : lifetimes)
    by_number[lifetime.number] = std::move(lifetime);
  std::vector<std::optional<stress::scenario::Scenario>> scenarios = ScenariosOf(run);
  std::vector<StoredCase> cases;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    const results::store::CaseRecord& record = run.cases[i];
    results::store::Lifetime& lifetime = by_number[static_cast<int>(i)];
    lifetime.number = static_cast<int>(i);
    verdict::Setting setting = results::store::SettingOf(run);
    setting.backend = record.backend;
    StoredCase made = CaseOf(run, std::move(lifetime), setting);
    made.record = &record;
    made.stored = &record.judgement;
    made.scenario = std::move(scenarios[i]);
    if (made.scenario) {
      made.setting = stress::cases::SettingOf(*made.scenario, made.setting.backend,
                                              made.setting.deadline_seconds);
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

bool IsSame(const verdict::Finding& a, const verdict::Finding& b) {
  std::vector<int> culprits = a.culprits, others = b.culprits;
  std::ranges::sort(culprits);
  std::ranges::sort(others);
  return a.cause == b.cause && a.proved == b.proved && culprits == others;
}

// The collective that the first finding of a trial names, from any journal.
std::optional<journal::JournalEvent> OperationOf(const StoredCase& stored_case) {
  if (stored_case.record == nullptr || !stored_case.record->trial) return std::nullopt;
  const results::store::Trial& trial = *stored_case.record->trial;
  for (const verdict::RankEvidence& rank : stored_case.evidence) {
    for (const journal::JournalEvent& event : rank.journal.events) {
      if (event.kind == journal::EventKind::kEnqueue && event.communicator == trial.communicator &&
          static_cast<std::int64_t>(event.sequence) == trial.sequence) {
        return event;
      }
    }
  }
  return std::nullopt;
}

bool IsAny(const std::vector<verdict::Finding>& findings, verdict::Severity severity) {
  return std::ranges::any_of(findings, [severity](const verdict::Finding& finding) {
    return finding.cause.info().severity == severity;
  });
}

// A case's own verdict says whether it came out as expected; here a failure is one, unless the run
// could not tell (it lacked memory, or an agent). What is slow is a note.
verdict::Verdict VerdictOf(const StoredCase& stored_case, const verdict::Judgement& again) {
  const verdict::Judgement& stored = *stored_case.stored;
  if (stored_case.record == nullptr) return stored.verdict;
  if (stored.verdict == verdict::Verdict::kUnknown) return verdict::Verdict::kUnknown;
  if (IsAny(stored.findings, verdict::Severity::kFailure)) return verdict::Verdict::kFail;
  if (IsAny(stored.findings, verdict::Severity::kInconclusive)) return verdict::Verdict::kUnknown;
  if (stored_case.whole || again.findings.empty()) return again.verdict;
  // What journals alone seem to tell is not what the run found.
  const bool finished = std::ranges::all_of(stored.outcomes, [](const verdict::RankOutcome& rank) {
    return rank.outcome == verdict::Outcome::kFinished;
  });
  return finished && stored.verdict == verdict::Verdict::kPass ? verdict::Verdict::kPass
                                                               : verdict::Verdict::kUnknown;
}

}  // namespace

Result<std::vector<StoredCase>> StoredCasesOf(const results::store::Run& run,
                                              const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<results::store::Lifetime> lifetimes,
                            results::store::LifetimesOf(run, path));
  const bool tried = std::ranges::any_of(
      run.cases, [](const results::store::CaseRecord& record) { return record.trial.has_value(); });
  if (tried) return StressCasesOf(run, std::move(lifetimes));
  std::vector<StoredCase> cases;
  const std::size_t count = lifetimes.size();
  for (results::store::Lifetime& lifetime : lifetimes) {
    const verdict::Judgement* stored = results::store::StoredJudgement(run, lifetime, count);
    cases.push_back(CaseOf(run, std::move(lifetime), results::store::SettingOf(run)));
    cases.back().stored = stored;
  }
  return cases;
}

verdict::Judgement JudgeAgain(const StoredCase& stored_case) {
  const verdict::Setting& setting = stored_case.setting;
  if (!stored_case.scenario) return verdict::Judge(stored_case.evidence, setting);
  return stress::cases::JudgeCase(*stored_case.scenario, setting.backend, stored_case.evidence,
                                  setting.deadline_seconds);
}

verdict::Judgement AsStored(const StoredCase& stored_case, const verdict::Judgement& again) {
  verdict::Judgement judgement = *stored_case.stored;
  judgement.verdict = VerdictOf(stored_case, again);
  for (verdict::Finding& finding : judgement.findings) {
    const auto same = std::ranges::find_if(
        again.findings, [&](const verdict::Finding& other) { return IsSame(finding, other); });
    if (same == again.findings.end()) continue;
    finding.operation = same->operation;
    finding.evidence = same->evidence;
  }
  if (!judgement.findings.empty() && !judgement.findings.front().operation) {
    judgement.findings.front().operation = OperationOf(stored_case);
  }
  return judgement;
}

}  // namespace lockstep::cli::diagnose
