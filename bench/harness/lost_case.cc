#include "bench/harness/lost_case.h"

namespace lockstep {
namespace {

// The newest event that the worker wrote itself; nullptr when it wrote none.
const JournalEvent* LastOwnEvent(const Journal& journal) {
  for (auto event = journal.events.rbegin(); event != journal.events.rend(); ++event) {
    if (event->kind != EventKind::kDeath) return &*event;
  }
  return nullptr;
}

// Everything but what precedes and follows the cases: a step has phases of its own.
bool IsOfACase(Phase phase) {
  return phase != Phase::kStart && phase != Phase::kConnect && phase != Phase::kAllocate &&
         phase != Phase::kFinalize;
}

}  // namespace

std::optional<std::size_t> LostCase(const std::vector<RankEvidence>& evidence,
                                    const Judgement& judgement) {
  std::vector<int> order;
  if (!judgement.findings.empty()) order = judgement.findings.front().culprits;
  for (const RankEvidence& rank : evidence) order.push_back(rank.rank);
  for (const int rank : order) {
    const RankEvidence& found = evidence[static_cast<std::size_t>(rank)];
    const JournalEvent* last = LastOwnEvent(found.journal);
    if (found.idle || last == nullptr) continue;
    if (IsOfACase(last->phase)) return last->case_index;
  }
  return std::nullopt;
}

}  // namespace lockstep
