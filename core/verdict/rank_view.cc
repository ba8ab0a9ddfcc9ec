#include "core/verdict/rank_view.h"

#include <algorithm>

#include "core/verdict/wording.h"

namespace lockstep {
namespace {

bool IsCollective(const JournalEvent& event) {
  return event.kind == EventKind::kEnqueue || event.kind == EventKind::kStart ||
         event.kind == EventKind::kEnd || event.kind == EventKind::kError;
}

}  // namespace

bool RankView::newest_collective_failed() const {
  return !open && !evidence->idle && last_collective != nullptr &&
         last_collective->kind == EventKind::kError;
}

bool RankView::reported_error() const {
  return !evidence->error.empty() || newest_collective_failed();
}

RankView ViewOf(const RankEvidence& evidence) {
  RankView view;
  view.evidence = &evidence;
  view.open = OpenOperation(evidence.journal);
  for (const JournalEvent& event : evidence.journal.events) {
    view.last = &event;
    view.phase = event.phase;
    if (event.kind == EventKind::kExit) view.announced_exit = true;
    if (!IsCollective(event)) continue;
    view.last_collective = &event;
    if (event.communicator != kWorld) continue;
    // Counting starts again with every new communicator of the world.
    if (event.sequence == 0 && event.kind == EventKind::kEnqueue) view.world_next = 0;
    const bool left = event.kind == EventKind::kEnd;
    view.world_next = std::max(view.world_next, event.sequence + (left ? 1 : 0));
  }
  if (view.in_world_operation()) view.world_next = view.open->sequence;
  return view;
}

Step StepAt(const RankView& view, std::uint64_t sequence) {
  if (view.world_next > sequence) return Step::kLeft;
  Step step = Step::kNotEntered;
  for (const JournalEvent& event : view.evidence->journal.events) {
    if (event.communicator != kWorld || !IsCollective(event)) continue;
    if (event.sequence == 0 && event.kind == EventKind::kEnqueue) step = Step::kNotEntered;
    if (event.sequence != sequence) continue;
    // One that reported an error is in it for ever: it did its part or not, nobody knows.
    step = std::max(step, event.kind == EventKind::kEnqueue ? Step::kEnqueued : Step::kStarted);
  }
  return step;
}

const JournalEvent* WorldEventAt(const RankView& view, std::uint64_t sequence,
                                 std::uint32_t case_index) {
  const auto& events = view.evidence->journal.events;
  const auto found = std::find_if(events.rbegin(), events.rend(), [&](const JournalEvent& event) {
    return event.communicator == kWorld && IsCollective(event) && event.sequence == sequence &&
           event.case_index == case_index;
  });
  return found == events.rend() ? nullptr : &*found;
}

std::string WhereOf(const RankView& view) {
  if (view.open) return DescribeInvocation(*view.open);
  if (view.evidence->state == ProcessState::kLost) return "unknown: its agent does not answer";
  if (view.last == nullptr) return "before its first journal event";
  if (view.newest_collective_failed()) return DescribeInvocation(*view.last_collective);
  std::string text(Doing(view.phase));
  if (view.announced_exit) {
    text = "leaving";
  } else if (view.evidence->idle) {
    text = "waiting for an order";
  }
  if (view.last_collective != nullptr) {
    text += " after " + DescribeInvocation(*view.last_collective);
  }
  return text;
}

std::string InOrWhile(const RankView& view) {
  const std::string where = WhereOf(view);
  if (view.open || view.newest_collective_failed()) return "in " + where;
  if (view.last == nullptr || where.starts_with("between")) return where;
  return "while " + where;
}

}  // namespace lockstep
