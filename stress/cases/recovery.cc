// What a recovery left behind is judged here: who is lost, why it did not succeed, when the ranks
// resumed.
#include "stress/cases/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/journal/purpose.h"
#include "core/verdict/cause.h"

namespace lockstep::stress::cases {
namespace {

void LeaveOut(verdict::RankEvidence& rank) {
  journal::JournalEvent exit{.index = 1, .ticks = 1, .kind = journal::EventKind::kExit};
  const int number = rank.rank;
  rank = verdict::RankEvidence();
  rank.rank = number;
  rank.state = verdict::ProcessState::kExited;
  rank.journal.events = {exit};
}

bool IsMember(const Generation& generation, int rank) {
  return std::binary_search(generation.members.begin(), generation.members.end(), rank);
}

std::string NameOf(const Generation& generation) {
  return fmt::format("world of generation {}", generation.number);
}

bool SpoilsData(const verdict::Finding& finding) {
  return finding.cause.info().blame == verdict::Blame::kCalls ||
         finding.cause == verdict::Cause::kDataCorruption;
}

// What can be of an iteration that ranks repeated.
bool MayBeRepeated(const verdict::Finding& finding, const Recovery& recovery) {
  if (!finding.operation) return true;
  const std::int32_t iteration = journal::UnpackAnnotation(finding.operation->value).iteration;
  return iteration < 0 || iteration >= recovery.first_iteration;
}

bool IsMadeGood(const verdict::Finding& finding, const Recovery& recovery) {
  if (!SpoilsData(finding)) return true;
  const verdict::Blame led = recovery.failure.findings.front().cause.info().blame;
  const bool by_calls = led == verdict::Blame::kCalls || led == verdict::Blame::kProgram;
  return by_calls && MayBeRepeated(finding, recovery);
}

}  // namespace

std::vector<verdict::RankEvidence> OfGeneration(std::vector<verdict::RankEvidence> evidence,
                                                const Generation& generation) {
  if (generation.number == 0) return evidence;
  for (verdict::RankEvidence& rank : evidence) {
    if (!IsMember(generation, rank.rank)) {
      LeaveOut(rank);
      continue;
    }
    const std::uint64_t since = generation.since[static_cast<std::size_t>(rank.rank)];
    std::erase_if(rank.journal.events,
                  [&](const journal::JournalEvent& event) { return event.index <= since; });
    const auto& events = rank.journal.events;
    const std::uint64_t written = events.empty() ? 0 : events.back().index - since;
    rank.journal.missed = written - std::min<std::uint64_t>(written, events.size());
  }
  return evidence;
}

void AddGeneration(const Generation& generation, verdict::Setting& setting) {
  if (generation.number == 0) return;
  setting.groups.push_back(
      {static_cast<std::uint16_t>(generation.number), NameOf(generation), generation.members});
}

bool StillStarts(const verdict::RankEvidence& rank) {
  const auto& events = rank.journal.events;
  return rank.state == verdict::ProcessState::kRunning &&
         (events.empty() || events.back().phase == journal::Phase::kStart);
}

verdict::Finding AbortHung(std::vector<int> culprits, double seconds) {
  verdict::Finding finding{.cause = verdict::Cause::kAbortHung};
  finding.message =
      fmt::format("rank {} did not complete Abort(), or the call that it was to end, within {} s",
                  fmt::join(culprits, ","), seconds);
  finding.headline = verdict::Headline::Of(finding.message);
  finding.remedy = finding.cause.info().remedy;
  finding.culprits = std::move(culprits);
  return finding;
}

verdict::Finding NotConnected(std::vector<int> culprits, double seconds) {
  verdict::Finding finding{.cause = verdict::Cause::kInitFailure};
  finding.message =
      fmt::format("the ranks did not connect anew within {} s; without a connection: rank {}",
                  seconds, fmt::join(culprits, ","));
  finding.headline = verdict::Headline::Of(finding.message);
  finding.remedy = "See what these ranks report, and whether all were given the same members.";
  finding.culprits = std::move(culprits);
  return finding;
}

verdict::Finding WrongPlace(int rank, Place taken, Place expected) {
  verdict::Finding finding{
      .cause = verdict::Cause::kInitFailure, .culprits = {rank}, .proved = true};
  finding.message =
      fmt::format("rank {} rebuilds as rank {} of {}, the others as {} ranks with it as rank {}",
                  rank, taken.rank, taken.size, expected.size, expected.rank);
  finding.headline = verdict::Headline::Of(finding.message);
  finding.remedy = "Agree on the members outside the library before any rank connects.";
  return finding;
}

std::vector<int> LostIn(const verdict::Judgement& failure, const std::vector<bool>& gone) {
  std::vector<int> lost;
  const bool silent = !failure.findings.empty() && !failure.findings.front().proved;
  for (const verdict::RankOutcome& rank : failure.outcomes) {
    const bool ended =
        rank.outcome == verdict::Outcome::kCrashed || rank.outcome == verdict::Outcome::kKilled ||
        rank.outcome == verdict::Outcome::kStopped ||
        (rank.outcome == verdict::Outcome::kFailed && gone[static_cast<std::size_t>(rank.rank)]);
    const bool blamed = silent && rank.outcome == verdict::Outcome::kHung &&
                        std::ranges::count(failure.findings.front().culprits, rank.rank) > 0;
    if (ended || blamed) lost.push_back(rank.rank);
  }
  return lost;
}

Ticks FaultTicks(const std::vector<verdict::RankEvidence>& evidence,
                 const std::vector<Ticks>& applied, Ticks after) {
  Ticks fault = 0;
  Ticks death = 0;
  for (const Ticks ticks : applied) fault = std::max(fault, ticks);
  for (const verdict::RankEvidence& rank : evidence) {
    for (const journal::JournalEvent& event : rank.journal.events) {
      if (event.kind == journal::EventKind::kFault) fault = std::max(fault, event.ticks);
      if (event.kind == journal::EventKind::kDeath) death = std::max(death, event.ticks);
    }
  }
  if (fault > after) return fault;
  return death > after ? death : 0;
}

std::optional<Ticks> ResumedAt(const std::vector<journal::Journal>& journals,
                               const Generation& generation) {
  Ticks last = 0;
  for (const int rank : generation.members) {
    const auto& events = journals[static_cast<std::size_t>(rank)].events;
    const auto end = std::ranges::find_if(events, [&](const journal::JournalEvent& event) {
      return event.kind == journal::EventKind::kEnd && event.communicator == generation.number &&
             event.sequence == 0;
    });
    if (end == events.end()) return std::nullopt;
    last = std::max(last, end->ticks);
  }
  return last > 0 ? std::optional(last) : std::nullopt;
}

verdict::Judgement WithRecoveries(verdict::Judgement last,
                                  const std::vector<Recovery>& recoveries) {
  if (recoveries.empty()) return last;
  const Recovery& newest = recoveries.back();
  // A recovery that failed left nothing to judge but what it was to recover from.
  if (newest.outcome != scenario::RecoveryOutcome::kResumed) {
    last = newest.failure;
    if (newest.finding) last.findings.insert(last.findings.begin(), *newest.finding);
  }
  std::vector<verdict::Finding> findings;
  for (std::size_t i = 0; i < recoveries.size(); ++i) {
    const Recovery& recovery = recoveries[i];
    const bool in_last =
        i + 1 == recoveries.size() && recovery.outcome != scenario::RecoveryOutcome::kResumed;
    if (!in_last) {
      findings.insert(findings.end(), recovery.failure.findings.begin(),
                      recovery.failure.findings.end());
    }
    for (const int rank : recovery.lost) {
      // Started anew, it has an outcome of its own.
      if (std::binary_search(newest.members.begin(), newest.members.end(), rank)) continue;
      last.outcomes[static_cast<std::size_t>(rank)] =
          recovery.failure.outcomes[static_cast<std::size_t>(rank)];
    }
  }
  if (newest.outcome == scenario::RecoveryOutcome::kResumed) {
    last.findings.insert(last.findings.begin(), findings.begin(), findings.end());
  } else {
    last.findings.insert(last.findings.end(), findings.begin(), findings.end());
  }
  return last;
}

std::optional<verdict::Finding> NotMadeGood(const verdict::Judgement& last,
                                            const std::vector<Recovery>& recoveries) {
  for (const Recovery& recovery : recoveries) {
    for (const verdict::Finding& finding : recovery.failure.findings) {
      if (!IsMadeGood(finding, recovery)) return finding;
    }
  }
  const auto found = std::ranges::find_if(last.findings, [](const verdict::Finding& finding) {
    return finding.cause.info().severity == verdict::Severity::kFailure;
  });
  return found == last.findings.end() ? std::nullopt : std::optional(*found);
}

std::string OutcomeOf(const std::vector<Recovery>& recoveries) {
  return recoveries.empty() ? "none" : std::string(scenario::NameOf(recoveries.back().outcome));
}

}  // namespace lockstep::stress::cases
