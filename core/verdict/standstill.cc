#include "core/verdict/standstill.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::verdict {
namespace {

bool Alive(const RankEvidence& evidence) {
  return evidence.state == ProcessState::kRunning || evidence.state == ProcessState::kLost;
}

std::uint64_t NewestIndex(const RankEvidence& evidence) {
  return evidence.journal.events.empty() ? 0 : evidence.journal.events.back().index;
}

}  // namespace

bool NobodyCanGoOn(const std::vector<RankEvidence>& evidence, const Judgement& judgement) {
  // That a rank failed is a fact, whether its cause is known or not.
  const bool proved = std::ranges::any_of(judgement.findings, [](const Finding& finding) {
    return finding.proved || finding.cause == Cause::kRankFailed;
  });
  if (!proved || judgement.outcomes.size() != evidence.size()) return false;
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    const bool waits = judgement.outcomes[i].outcome == Outcome::kHung;
    const bool done = evidence[i].state == ProcessState::kRunning && evidence[i].idle &&
                      judgement.outcomes[i].outcome == Outcome::kFinished;
    if (Alive(evidence[i]) && !waits && !done) return false;
  }
  return true;
}

bool SameMoment(const std::vector<RankEvidence>& first, const std::vector<RankEvidence>& second) {
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const RankEvidence& a, const RankEvidence& b) {
                      return a.rank == b.rank && a.state == b.state &&
                             NewestIndex(a) == NewestIndex(b);
                    });
}

Ticks NewestTicks(const std::vector<RankEvidence>& evidence) {
  Ticks newest = 0;
  for (const RankEvidence& rank : evidence) {
    if (!rank.journal.events.empty()) {
      newest = std::max(newest, rank.journal.events.back().ticks);
    }
  }
  return newest;
}

}  // namespace lockstep::verdict
