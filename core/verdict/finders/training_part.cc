// Reads a rank's journal backwards from the call in question: its newest bucket, the backward
// passes behind that, and the forward passes of evaluation.
#include "core/verdict/finders/training_part.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace lockstep::verdict::finders {
namespace {

const JournalEvent* InQuestion(const RankView& view, const std::vector<Mismatch>& mismatches) {
  if (!mismatches.empty()) {
    const Mismatch& mismatch = mismatches.front();
    return EventAt(view, mismatch.group, mismatch.sequence, mismatch.case_index);
  }
  if (const JournalEvent* const failed = FailedCallOf(view)) return failed;
  if (view.open != nullptr) return view.waits_in(0) ? view.open : nullptr;
  return view.newest_collective_failed() ? view.last_collective : nullptr;
}

// A forward pass of evaluation begins with it.
bool BeginsPass(const JournalEvent& event, const Annotation& says, bool join) {
  if (event.phase != Phase::kEvaluate || says.detail != 0) return false;
  return says.purpose == (join ? Purpose::kJoinAlive : Purpose::kBufferBroadcast);
}

void FollowCall(Part& part) {
  if (part.at == nullptr) return;
  part.phase = part.at->phase;
  bool called = false;
  int in_join = 0, plain = 0;
  for (const JournalEvent* end = part.at + 1; end != part.view->evidence->journal.events.data();) {
    const JournalEvent& event = *--end;
    if (event.kind != EventKind::kEnqueue) continue;
    const bool calls =
        event.communicator == part.at->communicator && event.sequence == part.at->sequence;
    if (calls) part.phase = event.phase;
    called = called || calls;
    if (!called) continue;
    const Annotation says = journal::UnpackAnnotation(event.value);
    const bool gradients = says.purpose == Purpose::kBucket && !calls;
    if (gradients) part.trained = says.iteration;
    if (gradients || (says.purpose == Purpose::kJoinShadowBucket && !calls)) break;
    in_join += BeginsPass(event, says, true) ? 1 : 0;
    plain += BeginsPass(event, says, false) ? 1 : 0;
  }
  part.passes = std::max(in_join, plain);
}

void FollowBuckets(Part& part) {
  const auto& events = part.view->evidence->journal.events;
  part.knows = part.view->complete();
  const JournalEvent* const end_of_search =
      part.at != nullptr ? part.at : events.data() + events.size();
  const JournalEvent* end = end_of_search;
  // What is posted may begin in a later iteration. Histories from elsewhere may have starts only.
  const bool queues =
      std::ranges::find(events, EventKind::kEnqueue, &JournalEvent::kind) != events.end();
  for (; end != events.data(); --end) {
    const JournalEvent* const event = end - 1;
    if (event->kind == EventKind::kCase) return;  // iterations begin again with every case
    if (event->kind == EventKind::kPhase && event->phase == Phase::kBackward) {
      ++part.backward_since;
    }
    if (event->kind != (queues ? EventKind::kEnqueue : EventKind::kStart)) continue;
    const Annotation annotation = journal::UnpackAnnotation(event->value);
    if (annotation.purpose != Purpose::kBucket) continue;
    // The operation itself may be journaled more than once.
    if (part.at != nullptr && event->sequence == part.at->sequence) continue;
    part.bucket = annotation;
    // A journal that was shortened lacks events in between.
    const JournalEvent& newest = *(end_of_search - 1);
    part.knows =
        part.knows || newest.index - event->index <= static_cast<std::uint64_t>(&newest - event);
    part.told_phases = event->phase == Phase::kBackward;
    return;
  }
}

// A rank that a recovery left behind is no member of the communicator in question: nobody waits for
// it.
void KeepMembers(const Situation& situation, Parts& parts) {
  std::unordered_set<int> groups;
  for (const Part& part : parts) {
    const Track* const track = part.at == nullptr ? nullptr : part.view->TrackOf(*part.at);
    if (track != nullptr && track->group != kUnknownGroup) groups.insert(track->group);
  }
  std::unordered_set<const RankView*> members;
  for (const int group : groups) {
    for (const std::size_t i : situation.GroupAt(group).members) {
      members.insert(&situation.views[i]);
    }
  }
  if (members.empty()) return;  // nobody said who they are
  std::erase_if(parts, [&](const Part& part) { return !members.contains(part.view); });
}

}  // namespace

Parts PartsOf(const Situation& situation, const std::vector<Mismatch>& mismatches) {
  Parts parts;
  bool training = false;
  for (const RankView& view : situation.views) {
    Part part{.view = &view, .at = InQuestion(view, mismatches)};
    if (part.at != nullptr) part.says = journal::UnpackAnnotation(part.at->value);
    training = training || part.says.purpose != Purpose::kNone;
    part.over = FinishedInOrder(view) || (view.running() && view.evidence->idle);
    parts.push_back(part);
  }
  KeepMembers(situation, parts);
  if (!training) return {};
  for (Part& part : parts) {
    FollowBuckets(part);
    FollowCall(part);
  }
  return parts;
}

bool IsJoinFlag(Purpose purpose) {
  return Purpose::kJoinAlive <= purpose && purpose <= Purpose::kJoinShouldSync;
}

bool IsOfForward(Purpose purpose) {
  return purpose == Purpose::kBufferBroadcast || IsJoinFlag(purpose);
}

int InputsOf(const Part& part) {
  const bool all_backward = part.told_phases || part.bucket.iteration < 0;
  return part.bucket.iteration + 1 + (all_backward ? part.backward_since : 0);
}

}  // namespace lockstep::verdict::finders
