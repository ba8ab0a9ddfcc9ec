// A difference counts only if both looks show it: collectives outpace the looks, and communicators
// come and go. An error stays, so the second look tells it. Who launched least is behind; whom RAS
// does not reach may be stopped, gone or cut off.
#include "core/ras/witness.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::ras {
namespace {

using verdict::Cause;
using verdict::Finding;

constexpr const char* kNext =
    "RAS alone proves nothing: take Flight Recorder dumps (lockstep diagnose --flight-recorder), "
    "and "
    "look at the process.";

// The same communicator in another look. Null also where several may be it: hashes are not unique,
// and text tells no more.
const Communicator* Find(const JobStatus& status, const Communicator& wanted) {
  const Communicator* found = nullptr;
  for (const Communicator& communicator : status.communicators) {
    if (communicator.name != wanted.name || communicator.second != wanted.second) continue;
    if (found != nullptr) return nullptr;
    found = &communicator;
  }
  return found;
}

bool Contains(const std::vector<Rank>& ranks, const Rank& rank) {
  return std::ranges::any_of(ranks, [&](const Rank& one) { return one.number == rank.number; });
}

std::string Named(const Rank& rank) {
  return rank.place.empty() ? fmt::format("rank {}", rank.number)
                            : fmt::format("rank {} ({})", rank.number, rank.place);
}

Finding Suspect(Cause cause, const std::vector<Rank>& ranks, const Communicator& communicator,
                const std::string& headline) {
  Finding finding{.cause = cause};
  for (const Rank& rank : ranks) finding.culprits.push_back(rank.number);
  finding.message = fmt::format("{}; communicator {}", headline, communicator.name);
  finding.headline = verdict::Headline(headline);
  finding.remedy = kNext;
  return finding;
}

void SuspectErrors(const Communicator& now, std::vector<Finding>& findings) {
  for (const RankError& error : now.errors) {
    findings.push_back(Suspect(Cause::kRankFailed, {error.rank}, now,
                               fmt::format("{} reports: {}", Named(error.rank), error.what)));
  }
}

void AddAborted(const Communicator* before, const Communicator& now,
                std::vector<Finding>& findings) {
  for (const Rank& rank : now.aborted) {
    const bool lasts = before != nullptr && Contains(before->aborted, rank);
    const char* const what = lasts ? "before the first look, and still has it"
                                   : "by the second look: an error, or its program ends it";
    findings.push_back(Suspect(lasts ? Cause::kRankFailed : Cause::kUnknown, {rank}, now,
                               fmt::format("{} aborted the communicator {}", Named(rank), what)));
  }
}

void AddMissing(const Communicator& before, const Communicator& now,
                std::vector<Finding>& findings) {
  for (const Rank& rank : now.missing) {
    if (!Contains(before.missing, rank)) continue;
    findings.push_back(
        Suspect(Cause::kRankLost, {rank}, now,
                Named(rank) + " does not answer NCCL's RAS: stopped, gone or cut off"));
  }
}

void AddInitializing(const Communicator& before, const Communicator& now,
                     std::vector<Finding>& findings) {
  std::vector<Rank> still;
  for (const Rank& rank : now.initializing) {
    if (Contains(before.initializing, rank)) still.push_back(rank);
  }
  if (still.empty()) return;
  findings.push_back(
      Suspect(Cause::kInitFailure, still, now,
              fmt::format("{}{} still initializes the communicator", Named(still.front()),
                          still.size() == 1 ? "" : fmt::format(" and {} more", still.size() - 1))));
}

// Of one operation, the fewest launches first.
using Groups = std::vector<CountGroup>;

std::vector<Groups> ByOperation(const Communicator& communicator) {
  std::vector<Groups> all;
  for (const CountGroup& group : communicator.counts) {
    if (all.empty() || all.back().front().operation != group.operation) all.emplace_back();
    all.back().push_back(group);
  }
  return all;
}

// Ranks that are first in one operation and last in another took different ways.
bool TookDifferentWays(const std::vector<Groups>& operations) {
  for (const Groups& one : operations) {
    for (const Groups& other : operations) {
      for (const Rank& rank : one.front().named) {
        if (Contains(other.back().named, rank)) return true;
      }
    }
  }
  return false;
}

std::string CountsText(const Groups& groups) {
  const CountGroup& few = groups.front();
  const CountGroup& many = groups.back();
  return fmt::format("launched {} {}, {} {}", few.count, few.operation,
                     many.ranks == 1 && !many.named.empty()
                         ? fmt::format("rank {}", many.named.front().number)
                         : fmt::format("{} ranks", many.ranks),
                     many.count);
}

void AddBehind(const Communicator& before, const Communicator& now,
               std::vector<Finding>& findings) {
  const bool moved = now.counts != before.counts || now.total != before.total;
  if (now.counts.empty() || moved) return;
  const std::vector<Groups> operations = ByOperation(now);
  const bool differ = TookDifferentWays(operations);
  for (const Groups& groups : operations) {
    const CountGroup& few = groups.front();
    const std::string who =
        few.named.size() == 1 ? Named(few.named.front()) : fmt::format("{} ranks", few.ranks);
    findings.push_back(
        Suspect(differ ? Cause::kCollectiveMismatch : Cause::kRankBusy, few.named, now,
                fmt::format("{} {}; no launch between the looks", who, CountsText(groups))));
  }
}

bool Moved(const JobStatus& first, const JobStatus& second) {
  return std::ranges::any_of(second.communicators, [&](const Communicator& now) {
    const Communicator* before = Find(first, now);
    return before != nullptr && (now.total != before->total || now.counts != before->counts);
  });
}

}  // namespace

Testimony Hear(const JobStatus& first, const JobStatus& second) {
  Testimony testimony;
  for (const Communicator& now : second.communicators) {
    SuspectErrors(now, testimony.findings);
    const Communicator* before = Find(first, now);
    AddAborted(before, now, testimony.findings);
    if (before == nullptr) continue;
    AddMissing(*before, now, testimony.findings);
    AddInitializing(*before, now, testimony.findings);
    AddBehind(*before, now, testimony.findings);
  }
  if (!testimony.findings.empty()) return testimony;
  if (Moved(first, second)) {
    testimony.verdict = verdict::Verdict::kPass;
    testimony.sentence = "NCCL goes on: ranks launched operations between the looks";
  } else if (second.counts_all) {
    testimony.sentence =
        "all ranks launched the same and nothing since: idle, or all wait in one collective";
  } else {
    testimony.sentence =
        "RAS names no rank; NCCL before 2.28.7 does not say whether the job goes on";
  }
  return testimony;
}

}  // namespace lockstep::ras
