// From the facts of a case to its verdict: what a judge is to see, the judgement, and whether it is
// what the scenario expects. Pure.
#include "stress/cases/assess.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "core/ddp/training.h"
#include "core/verdict/cause.h"
#include "core/verdict/links/slow_link.h"
#include "stress/cases/name_causes.h"
#include "stress/cases/why_unknown.h"

namespace lockstep::stress::cases {
namespace {

// What is known of the data of ranks that all finished.
std::string DescribeFinish(const StressCase& stress_case, const CaseFacts& facts) {
  bool known = false, alike = false, unchecked = false;
  for (const auto& report : facts.reports) {
    if (!report) continue;
    known = known || report->checked > 0;
    alike = alike || !report->gradients.empty();
    unchecked = unchecked || report->unchecked > 0;
  }
  if (!known && !alike) return "every rank finished; data not compared";
  if (unchecked) return "every rank finished; data compared in part";
  // Parameters and buffers are not compared.
  const bool trains = std::holds_alternative<ddp::TrainingProgram>(stress_case.scenario.workload);
  return fmt::format("every rank finished with {} {}", known ? "right" : "equal",
                     trains ? "gradients" : "data");
}

void MarkOver(verdict::RankEvidence& evidence) {
  evidence.state = verdict::ProcessState::kExited;
  evidence.exit_code = 0;
  evidence.idle = false;
  std::vector<journal::JournalEvent>& events = evidence.journal.events;
  if (events.empty() || events.back().kind == journal::EventKind::kExit) return;
  journal::JournalEvent exit = events.back();
  ++exit.index;
  exit.kind = journal::EventKind::kExit;
  exit.value = 0;
  events.push_back(exit);
}

// Ranks whose gradients differ from those of most; all that differ when there is no majority.
void CompareGradients(const std::vector<std::optional<workloads::ProgramReport>>& reports,
                      std::vector<verdict::RankEvidence>& evidence) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (!reports[rank] || !reports[rank]->status.ok() || reports[rank]->gradients.empty()) continue;
    groups[reports[rank]->gradients].push_back(rank);
  }
  if (groups.size() < 2) return;
  std::size_t all = 0;
  for (const auto& [print, ranks] : groups) all += ranks.size();
  for (const auto& [print, ranks] : groups) {
    if (2 * ranks.size() > all) continue;
    for (const std::size_t rank : ranks) {
      if (!evidence[rank].wrong_data.empty()) continue;
      evidence[rank].wrong_data = "the averaged gradients are not those of the other ranks";
    }
  }
}

bool AllFinished(const verdict::Judgement& judgement) {
  return std::ranges::all_of(judgement.outcomes, [](const verdict::RankOutcome& rank) {
    return rank.outcome == verdict::Outcome::kFinished;
  });
}

std::string JoinOutcomes(const verdict::Judgement& judgement) {
  std::vector<std::string_view> names;
  for (const verdict::RankOutcome& rank : judgement.outcomes)
    names.push_back(verdict::NameOf(rank.outcome));
  return fmt::format("{}", fmt::join(names, ","));
}

std::string DescribeExpectation(const scenario::Expectation& expectation) {
  std::vector<std::string> ranks;
  for (const auto& outcomes : expectation.ranks) {
    ranks.push_back(fmt::format("{}", fmt::join(outcomes, "|")));
  }
  std::string text = fmt::format("{}", fmt::join(ranks, ","));
  if (expectation.cause) text += fmt::format(" by {}", verdict::NameOf(*expectation.cause));
  if (!expectation.culprits.empty()) {
    text += fmt::format(" of rank {}", fmt::join(expectation.culprits, ","));
  }
  if (!expectation.hosts_of.empty()) {
    text += fmt::format(" of the hosts of rank {}", fmt::join(expectation.hosts_of, ","));
  }
  if (text.empty()) text = expectation.recovery.empty() ? "its figures" : "its recovery";
  return text;
}

std::string DescribeJudgement(const verdict::Judgement& judgement) {
  std::string text = JoinOutcomes(judgement);
  if (judgement.findings.empty()) return text;
  const verdict::Finding& first = judgement.findings.front();
  text += fmt::format(" by {}", first.cause.name());
  if (!first.culprits.empty()) text += fmt::format(" of rank {}", fmt::join(first.culprits, ","));
  return text;
}

// Why a case came out as it should: what was found of it, in words.
std::string WhyExpected(const StressCase& stress_case, const CaseResult& result) {
  const verdict::Judgement& judgement = result.judgement;
  if (!judgement.findings.empty())
    return "as expected: " + judgement.findings.front().headline.text();
  return "as expected: " + (AllFinished(judgement) ? DescribeFinish(stress_case, result.facts)
                                                   : JoinOutcomes(judgement));
}

// Whether the culprits' hosts are those that are expected.
bool MeetsHosts(const std::vector<int>& culprits, const std::vector<int>& expected,
                const std::vector<verdict::links::RankHost>& hosts) {
  const auto names = [&](const std::vector<int>& ranks) {
    std::set<std::string> all;
    for (const int rank : ranks) all.insert(hosts[static_cast<std::size_t>(rank)].name);
    return all;
  };
  return expected.empty() || (!hosts.empty() && names(culprits) == names(expected));
}

// Wrong data that neither the expected outcomes nor the expected cause name.
bool HasUnexpectedData(const verdict::Judgement& judgement,
                       const scenario::Expectation& expectation) {
  bool named = !expectation.ranks.empty();
  if (expectation.cause) {
    const verdict::Blame blame = verdict::InfoOf(*expectation.cause).blame;
    named = named || blame == verdict::Blame::kCalls || blame == verdict::Blame::kProgram ||
            *expectation.cause == verdict::Cause::kDataCorruption;
  }
  return !named && std::ranges::any_of(judgement.outcomes, [](const verdict::RankOutcome& rank) {
    return rank.outcome == verdict::Outcome::kCorrupt;
  });
}

bool Meets(const verdict::Judgement& judgement, const scenario::Expectation& expectation,
           const std::vector<verdict::links::RankHost>& hosts) {
  if (HasUnexpectedData(judgement, expectation)) return false;
  for (std::size_t rank = 0; rank < expectation.ranks.size(); ++rank) {
    const std::string name(verdict::NameOf(judgement.outcomes[rank].outcome));
    const auto& allowed = expectation.ranks[rank];
    if (std::ranges::find(allowed, name) == allowed.end()) return false;
  }
  if (!expectation.cause && expectation.culprits.empty() && expectation.hosts_of.empty()) {
    return true;
  }
  if (judgement.findings.empty()) return false;
  const verdict::Finding& first = judgement.findings.front();
  if (expectation.cause && first.cause != *expectation.cause) return false;
  if (!MeetsHosts(first.culprits, expectation.hosts_of, hosts)) return false;
  std::vector<int> culprits = first.culprits;
  std::vector<int> expected = expectation.culprits;
  std::ranges::sort(culprits);
  std::ranges::sort(expected);
  return expected.empty() || culprits == expected;
}

// Why the figures of a rank are not the expected ones, or "".
std::string WrongFigure(const std::vector<std::optional<workloads::ProgramReport>>& reports,
                        const scenario::Expectation& expectation) {
  for (const auto& [name, range] : expectation.figures) {
    for (std::size_t rank = 0; rank < reports.size(); ++rank) {
      const bool known = reports[rank] && reports[rank]->figures.contains(name);
      const double value = known ? reports[rank]->figures.at(name) : 0;
      if (known && value >= range.first && value <= range.second) continue;
      return fmt::format("{} of rank {} is {}, expected {} to {}", name, rank,
                         known ? fmt::format("{}", value) : "not known", range.first, range.second);
    }
  }
  return "";
}

// Why it did not come to the expected recovery, or "".
std::string WrongRecovery(const std::vector<Recovery>& recoveries,
                          const scenario::Expectation& expectation) {
  const std::string outcome = OutcomeOf(recoveries);
  if (expectation.recovery.empty() || outcome == expectation.recovery) return "";
  return fmt::format("the recovery is '{}', expected '{}'", outcome, expectation.recovery);
}

// Nothing of a scenario is to be expected of a launch that lost a host. Stopped workers, of which
// their agents tell, may be what the scenario is about.
bool IsOfTheLaunch(const verdict::Judgement& judgement) {
  if (judgement.findings.empty()) return false;
  const verdict::Finding& first = judgement.findings.front();
  return first.cause == verdict::Cause::kHostLost || first.cause == verdict::Cause::kLauncherLost ||
         first.cause == verdict::Cause::kHostCutOff ||
         (first.cause == verdict::Cause::kHostStopped && !first.proved) ||
         (first.cause == verdict::Cause::kAgentLost &&
          judgement.verdict == verdict::Verdict::kFail);
}

// Why a slow link that is expected may be there and was not seen, or "".
std::string WhyUnseen(const scenario::Expectation& expectation, const CaseResult& result) {
  const bool is_about_slow_links = expectation.cause == verdict::Cause::kSlowLink;
  if (!is_about_slow_links || !result.judgement.findings.empty() || !AllFinished(result.judgement))
    return "";
  return verdict::links::WhyNoneIsKnown(verdict::PointersTo(result.facts.evidence));
}

// Which fault changed data without anybody seeing it, or "".
std::string WhyNotSeen(const StressCase& stress_case, const CaseResult& result) {
  const bool seen = std::ranges::any_of(result.judgement.findings, [](const auto& finding) {
    return finding.cause == verdict::Cause::kDataCorruption;
  });
  for (std::size_t i = 0; i < stress_case.faults.size() && !seen; ++i) {
    const faults::PlannedFault& fault = stress_case.faults[i];
    const bool corrupts = fault.kind == faults::FaultKind::kCorruptInput ||
                          fault.kind == faults::FaultKind::kCorruptResult;
    if (!corrupts || !result.facts.fired[i]) continue;
    return fmt::format("{}; no comparison of data shows {}",
                       DescribeFinish(stress_case, result.facts), faults::Describe(fault));
  }
  return "";
}

// Of a scenario that expects nothing. Ranks can finish with wrong data that no program compared.
void CompareWithHealth(const StressCase& stress_case,
                       const std::optional<verdict::Finding>& not_made_good, CaseResult& result) {
  const auto& findings = result.judgement.findings;
  const bool healthy = AllFinished(result.judgement) && !not_made_good;
  if (healthy) result.why = WhyNotSeen(stress_case, result);
  if (!result.why.empty()) return;
  result.verdict = healthy ? verdict::Verdict::kPass : verdict::Verdict::kFail;
  if (healthy) {
    result.why = DescribeFinish(stress_case, result.facts);
  } else if (findings.empty()) {
    result.why = DescribeJudgement(result.judgement);
  } else {
    // What they recovered from comes first, but is not why it fails.
    const bool resumed = OutcomeOf(result.facts.recoveries) == "resumed";
    result.why = (resumed && not_made_good ? *not_made_good : findings.front()).headline.text();
  }
}

void Compare(const StressCase& stress_case, const std::string& backend,
             const std::optional<verdict::Finding>& not_made_good, CaseResult& result) {
  const scenario::Expectation* expectation = ExpectationFor(stress_case.scenario, backend);
  if (expectation == nullptr && !stress_case.scenario.expect.empty()) {
    result.why = fmt::format("the scenario does not say what to expect of {}", backend);
    return;
  }
  if (expectation == nullptr) return CompareWithHealth(stress_case, not_made_good, result);
  if (result.why = WhyUnseen(*expectation, result); !result.why.empty()) return;
  const std::string wrong_figure = WrongFigure(result.facts.reports, *expectation);
  const std::string wrong_recovery = WrongRecovery(result.facts.recoveries, *expectation);
  const bool met = Meets(result.judgement, *expectation, result.facts.hosts) &&
                   wrong_figure.empty() && wrong_recovery.empty();
  result.verdict = met ? verdict::Verdict::kPass : verdict::Verdict::kFail;
  result.why = met ? WhyExpected(stress_case, result)
                   : fmt::format("expected {}; got {}", DescribeExpectation(*expectation),
                                 DescribeJudgement(result.judgement));
  if (HasUnexpectedData(result.judgement, *expectation))
    result.why += "; it does not expect wrong data";
  if (!wrong_recovery.empty()) result.why += fmt::format("; {}", wrong_recovery);
  if (!wrong_figure.empty()) result.why += fmt::format("; {}", wrong_figure);
}

}  // namespace

std::vector<verdict::RankEvidence> AsJudged(
    std::vector<verdict::RankEvidence> evidence,
    const std::vector<std::optional<workloads::ProgramReport>>& reports,
    const std::vector<bool>& heals, bool stuck) {
  for (std::size_t rank = 0; rank < evidence.size(); ++rank) {
    verdict::RankEvidence& known = evidence[rank];
    if (heals[rank] && known.state == verdict::ProcessState::kStopped)
      known.state = verdict::ProcessState::kRunning;
    if (!reports[rank]) continue;
    known.wrong_data = reports[rank]->wrong_data;
    if (!reports[rank]->status.ok()) {
      known.error = reports[rank]->status.message();
    } else if (known.state == verdict::ProcessState::kRunning && !stuck) {
      MarkOver(known);
    }
  }
  CompareGradients(reports, evidence);
  return evidence;
}

verdict::Setting SettingOf(const scenario::Scenario& scenario, const std::string& backend,
                           double deadline_seconds) {
  verdict::Setting setting{.deadline_seconds = deadline_seconds, .backend = backend};
  // Scripts without streams block; training has one stream of collectives.
  setting.one_stream = true;
  if (const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload)) {
    setting.one_stream = !scenario::UsesStreams(*script);
    std::uint16_t number = 0;
    for (const scenario::ScriptCommunicator& made : scenario::MadeCommunicators(*script)) {
      setting.groups.push_back({++number, made.name, made.members});
    }
  }
  return setting;
}

verdict::Judgement JudgeCase(const scenario::Scenario& scenario, const std::string& backend,
                             const std::vector<verdict::RankEvidence>& evidence,
                             double deadline_seconds, const Generation& generation) {
  verdict::Setting setting = SettingOf(scenario, backend, deadline_seconds);
  AddGeneration(generation, setting);
  verdict::Judgement judgement = verdict::Judge(evidence, setting);
  NameCauses(scenario, evidence, judgement);
  return judgement;
}

const scenario::Expectation* ExpectationFor(const scenario::Scenario& scenario,
                                            const std::string& backend) {
  constexpr std::string_view kSim = "sim_";
  std::vector<std::string> keys = {backend};
  // A simulation of a library's rules does what the library does, unless the file knows better.
  if (backend.starts_with(kSim)) {
    keys.emplace_back("sim");
    keys.push_back(backend.substr(kSim.size()));
  }
  keys.emplace_back("any");
  for (const std::string& key : keys) {
    const auto found = scenario.expect.find(key);
    if (found != scenario.expect.end()) return &found->second;
  }
  return nullptr;
}

CaseResult Assess(const StressCase& stress_case, const std::string& backend,
                  double deadline_seconds, CaseFacts facts) {
  CaseResult result;
  facts.deadline_seconds = deadline_seconds;
  result.judgement =
      JudgeCase(stress_case.scenario, backend, facts.evidence, deadline_seconds, facts.generation);
  const auto not_made_good = NotMadeGood(result.judgement, facts.recoveries);
  result.judgement = WithRecoveries(std::move(result.judgement), facts.recoveries);
  if (!facts.places.empty()) verdict::NameLostHosts(facts.places, facts.evidence, result.judgement);
  // A note, where nothing else is to be said.
  verdict::links::AlignClocks(facts.hosts, facts.evidence);
  if (result.judgement.findings.empty()) {
    result.judgement.findings = verdict::links::FindSlowLinks(verdict::PointersTo(facts.evidence));
  }
  verdict::links::NameHosts(facts.evidence, facts.hosts, result.judgement);
  if (IsOfTheLaunch(result.judgement)) {
    result.verdict = verdict::Verdict::kFail;
    result.why = result.judgement.findings.front().headline.text();
    result.facts = std::move(facts);
    return result;
  }
  const bool agent_lost = !result.judgement.findings.empty() &&
                          result.judgement.findings.front().cause == verdict::Cause::kAgentLost;
  result.why = agent_lost ? result.judgement.findings.front().headline.text()
                          : WhyUnknown(stress_case, backend, facts);
  result.facts = std::move(facts);
  if (result.why.empty()) Compare(stress_case, backend, not_made_good, result);
  return result;
}

}  // namespace lockstep::stress::cases
