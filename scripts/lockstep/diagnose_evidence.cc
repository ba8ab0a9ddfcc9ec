#include "scripts/lockstep/diagnose_evidence.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

void ApplyEvent(const JournalEvent& event, RankEvidence& rank) {
  if (event.kind == EventKind::kIdle) rank.idle = true;
  // Anything that follows is work on an order.
  if (event.kind == EventKind::kCase || event.kind == EventKind::kEnqueue) rank.idle = false;
  if (event.kind == EventKind::kExit) {
    rank.state = ProcessState::kExited;
    rank.exit_code = static_cast<int>(event.value);
  }
  if (event.kind == EventKind::kDeath) {
    const int status = static_cast<int>(event.value);
    rank.state = WIFSIGNALED(status) ? ProcessState::kSignalled : ProcessState::kExited;
    rank.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    rank.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  }
}

// Without whom it waited for by the judgement of the time, which is found again.
std::string SystemPart(const std::string& evidence) {
  if (!evidence.starts_with("waiting for rank ")) return evidence;
  const std::size_t end = evidence.find("; ");
  return end == std::string::npos ? "" : evidence.substr(end + 2);
}

void ApplyOutcome(const RankOutcome& outcome, RankEvidence& rank) {
  if (rank.state != ProcessState::kRunning) return;
  switch (outcome.outcome) {
    case Outcome::kStopped:
      rank.state = ProcessState::kStopped;
      rank.signal = outcome.signal;
      break;
    case Outcome::kCrashed:
    case Outcome::kKilled:
      rank.state = ProcessState::kSignalled;
      rank.signal = outcome.signal;
      break;
    case Outcome::kFailed:
      rank.error = outcome.evidence.empty() ? "it failed" : outcome.evidence;
      break;
    case Outcome::kCorrupt:
      rank.wrong_data = outcome.evidence.empty() ? "wrong elements" : outcome.evidence;
      break;
    case Outcome::kHung:
      rank.system = SystemPart(outcome.evidence);
      rank.asleep = rank.system.starts_with("asleep");
      break;
    case Outcome::kFinished:
      break;
  }
  rank.seconds_silent = outcome.seconds_silent;
}

}  // namespace

const Judgement* StoredJudgement(const Run& run, const Lifetime& lifetime, std::size_t lifetimes) {
  // Every case of a stress run has workers of its own.
  const auto number = static_cast<std::size_t>(lifetime.number);
  if (number < run.cases.size() && run.cases[number].trial) return &run.cases[number].judgement;
  if (lifetimes == 1) return &run.judgement;
  for (const RankEvidence& rank : lifetime.evidence) {
    if (rank.journal.events.empty()) continue;
    const std::size_t index = rank.journal.events.back().case_index;
    if (index >= run.cases.size()) continue;
    const Judgement& judgement = run.cases[index].judgement;
    const bool interrupted =
        std::any_of(judgement.outcomes.begin(), judgement.outcomes.end(),
                    [](const RankOutcome& one) { return one.outcome != Outcome::kFinished; });
    if (interrupted) return &judgement;
  }
  return nullptr;
}

Result<std::vector<Lifetime>> LifetimesOf(const Run& run, const std::string& path) {
  std::map<int, Lifetime> by_number;
  for (const RankHistory& history : run.history) {
    RankEvidence rank;
    rank.rank = history.rank;
    rank.journal = {history.events, history.missed};
    for (const JournalEvent& event : history.events) ApplyEvent(event, rank);
    by_number[history.lifetime].number = history.lifetime;
    by_number[history.lifetime].evidence.push_back(std::move(rank));
  }
  if (by_number.empty()) {
    return InvalidInput(
        fmt::format("{}: holds no history of any rank; name a run file whose "
                    "workers got as far as to journal something",
                    path));
  }
  std::vector<Lifetime> lifetimes;
  for (auto& [number, lifetime] : by_number) {
    std::sort(lifetime.evidence.begin(), lifetime.evidence.end(),
              [](const RankEvidence& a, const RankEvidence& b) { return a.rank < b.rank; });
    const Judgement* stored = StoredJudgement(run, lifetime, by_number.size());
    std::map<int, const RankOutcome*> outcomes;
    if (stored != nullptr) {
      for (const RankOutcome& outcome : stored->outcomes) outcomes[outcome.rank] = &outcome;
    }
    for (RankEvidence& rank : lifetime.evidence) {
      const auto found = outcomes.find(rank.rank);
      if (found != outcomes.end()) ApplyOutcome(*found->second, rank);
    }
    lifetimes.push_back(std::move(lifetime));
  }
  return lifetimes;
}

Setting SettingOf(const Run& run) {
  Setting setting;
  if (!run.cases.empty()) setting.backend = run.cases.front().backend;
  const auto plan = nlohmann::json::parse(run.plan_text, nullptr, false);
  if (plan.is_object() && plan.contains("deadline_seconds") &&
      plan["deadline_seconds"].is_number()) {
    setting.deadline_seconds = plan["deadline_seconds"].get<double>();
  }
  return setting;
}

}  // namespace lockstep
