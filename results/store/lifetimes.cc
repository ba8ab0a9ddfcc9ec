// Older files hold journals and outcomes, but not the evidence of the judge. This rebuilds it:
// events decide how a process ended, and the stored outcomes add what only the agents knew.
#include "results/store/lifetimes.h"

#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace lockstep::results::store {
namespace {

void ApplyEvent(const journal::JournalEvent& event, verdict::RankEvidence& rank) {
  if (event.kind == journal::EventKind::kIdle) rank.idle = true;
  // Anything that follows is work on an order.
  if (event.kind == journal::EventKind::kCase || event.kind == journal::EventKind::kEnqueue)
    rank.idle = false;
  if (event.kind == journal::EventKind::kExit) {
    rank.state = verdict::ProcessState::kExited;
    rank.exit_code = static_cast<int>(event.value);
  }
  if (event.kind == journal::EventKind::kDeath) {
    const int status = static_cast<int>(event.value);
    rank.state =
        WIFSIGNALED(status) ? verdict::ProcessState::kSignalled : verdict::ProcessState::kExited;
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

void ApplyOutcome(const verdict::RankOutcome& outcome, verdict::RankEvidence& rank) {
  if (rank.state != verdict::ProcessState::kRunning) return;
  switch (outcome.outcome) {
    case verdict::Outcome::kStopped:
      rank.state = verdict::ProcessState::kStopped;
      rank.signal = outcome.signal;
      break;
    case verdict::Outcome::kCrashed:
    case verdict::Outcome::kKilled:
      rank.state = verdict::ProcessState::kSignalled;
      rank.signal = outcome.signal;
      break;
    case verdict::Outcome::kFailed:
      rank.error = outcome.evidence.empty() ? "it failed" : outcome.evidence;
      break;
    case verdict::Outcome::kCorrupt:
      rank.wrong_data = outcome.evidence.empty() ? "wrong elements" : outcome.evidence;
      break;
    case verdict::Outcome::kHung:
      rank.system = SystemPart(outcome.evidence);
      rank.asleep = rank.system.starts_with("asleep");
      break;
    case verdict::Outcome::kFinished:
      break;
  }
  rank.seconds_silent = outcome.seconds_silent;
}

}  // namespace

const verdict::Judgement* StoredJudgement(const Run& run, const Lifetime& lifetime,
                                          std::size_t lifetimes) {
  // Every case of a stress run has workers of its own.
  const auto number = static_cast<std::size_t>(lifetime.number);
  if (number < run.cases.size() && run.cases[number].trial) return &run.cases[number].judgement;
  if (lifetimes == 1) return &run.judgement;
  for (const verdict::RankEvidence& rank : lifetime.evidence) {
    if (rank.journal.events.empty()) continue;
    const std::size_t index = rank.journal.events.back().case_index;
    if (index >= run.cases.size()) continue;
    const verdict::Judgement& judgement = run.cases[index].judgement;
    const bool interrupted = std::ranges::any_of(
        judgement.outcomes,
        [](const verdict::RankOutcome& one) { return one.outcome != verdict::Outcome::kFinished; });
    if (interrupted) return &judgement;
  }
  return nullptr;
}

Result<std::vector<Lifetime>> LifetimesOf(const Run& run, const std::string& path) {
  std::map<int, Lifetime> by_number;
  for (const RankHistory& history : run.history) {
    verdict::RankEvidence rank;
    rank.rank = history.rank;
    rank.journal = {history.events, history.missed};
    for (const journal::JournalEvent& event : history.events) ApplyEvent(event, rank);
    by_number[history.lifetime].number = history.lifetime;
    by_number[history.lifetime].evidence.push_back(std::move(rank));
  }
  if (by_number.empty()) {
    return InvalidInput(
        "{}: holds no history of any rank; name a run file whose workers got as far as to journal "
        "something",
        path);
  }
  std::vector<Lifetime> lifetimes;
  for (auto& [number, lifetime] : by_number) {
    std::ranges::sort(lifetime.evidence, {}, &verdict::RankEvidence::rank);
    const verdict::Judgement* stored = StoredJudgement(run, lifetime, by_number.size());
    std::map<int, const verdict::RankOutcome*> outcomes;
    if (stored != nullptr) {
      for (const verdict::RankOutcome& outcome : stored->outcomes)
        outcomes[outcome.rank] = &outcome;
    }
    for (verdict::RankEvidence& rank : lifetime.evidence) {
      const auto found = outcomes.find(rank.rank);
      if (found != outcomes.end()) ApplyOutcome(*found->second, rank);
    }
    lifetimes.push_back(std::move(lifetime));
  }
  return lifetimes;
}

verdict::Setting SettingOf(const Run& run) {
  verdict::Setting setting;
  if (!run.cases.empty()) setting.backend = run.cases.front().backend;
  const auto plan = nlohmann::json::parse(run.plan_text, nullptr, false);
  if (plan.is_object() && plan.contains("deadline_seconds") &&
      plan["deadline_seconds"].is_number()) {
    setting.deadline_seconds = plan["deadline_seconds"].get<double>();
  }
  return setting;
}

}  // namespace lockstep::results::store
