#include "bench/measure/lost_case.h"

namespace lockstep::bench::measure {
namespace {

// The newest event that the worker wrote itself; nullptr when it wrote none.
const journal::JournalEvent* LastOwnEvent(const journal::Journal& journal) {
  for (auto event = journal.events.rbegin(); event != journal.events.rend(); ++event) {
    if (event->kind != journal::EventKind::kDeath) return &*event;
  }
  return nullptr;
}

// Everything but what precedes and follows the cases: a step has phases of its own.
bool IsOfACase(journal::Phase phase) {
  return phase != journal::Phase::kStart && phase != journal::Phase::kConnect &&
         phase != journal::Phase::kAllocate && phase != journal::Phase::kFinalize;
}

}  // namespace

std::optional<std::size_t> LostCase(const std::vector<verdict::RankEvidence>& evidence,
                                    const verdict::Judgement& judgement) {
  std::vector<int> order;
  if (!judgement.findings.empty()) order = judgement.findings.front().culprits;
  for (const verdict::RankEvidence& rank : evidence) order.push_back(rank.rank);
  for (const int rank : order) {
    const verdict::RankEvidence& found = evidence[static_cast<std::size_t>(rank)];
    const journal::JournalEvent* last = LastOwnEvent(found.journal);
    if (found.idle || last == nullptr) continue;
    if (IsOfACase(last->phase)) return last->case_index;
  }
  return std::nullopt;
}

}  // namespace lockstep::bench::measure
