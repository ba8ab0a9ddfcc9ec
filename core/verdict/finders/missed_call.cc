#include "core/verdict/finders/missed_call.h"

#include <algorithm>
#include <cstdint>

#include "core/verdict/messages.h"

namespace lockstep::verdict::finders {

const JournalEvent& FirstMissed(const Situation& situation, int group, const Views& missing,
                                const Views& waiting, const JournalEvent& operation) {
  if (missing.empty() || waiting.empty()) return operation;
  // Positions of messages mean different things on different ranks.
  if (!situation.GroupAt(group).aligned || operation.communicator >= kFirstLane) return operation;
  std::uint64_t first = 0;
  for (const RankView* view : missing) {
    const Track* const track = view->On(group);
    const bool known = track != nullptr || view->complete();
    if (view->open != nullptr || !known) return operation;
    first = std::max(first, track == nullptr ? 0 : track->queued);
  }
  const JournalEvent* const call = EventAt(*waiting.front(), group, first, operation.case_index);
  return call != nullptr && first < operation.sequence ? *call : operation;
}

}  // namespace lockstep::verdict::finders
