#include "core/verdict/rank_view.h"

#include <algorithm>

#include "core/verdict/wording.h"

namespace lockstep {
namespace {

// Operations that were begun and not ended, oldest first. There are few at any time, and they
// mostly end in order; a set would cost more than all the rest of a judgement.
class OpenOperations {
 public:
  // `is_new`: certainly not in the list.
  void Begin(const JournalEvent& event, bool is_new) {
    if (!is_new) {
      if (const JournalEvent** known = Find(event)) {
        *known = &event;
        return;
      }
    }
    open_.push_back(&event);
  }
  void End(const JournalEvent& event) {
    if (const JournalEvent** known = Find(event))
      open_.erase(open_.begin() + (known - open_.data()));
  }
  void Forget(std::uint16_t communicator) {
    std::erase_if(open_, [&](const JournalEvent* e) { return e->communicator == communicator; });
  }
  void Clear() { open_.clear(); }
  const std::vector<const JournalEvent*>& list() const { return open_; }

 private:
  const JournalEvent** Find(const JournalEvent& event) {
    for (const JournalEvent*& known : open_) {
      if (known->sequence == event.sequence && known->communicator == event.communicator) {
        return &known;
      }
    }
    return nullptr;
  }
  std::vector<const JournalEvent*> open_;
};

Track& TrackOf(RankView& view, std::uint16_t communicator) {
  for (Track& track : view.tracks) {
    if (track.communicator == communicator) return track;
  }
  view.tracks.push_back({.communicator = communicator});
  return view.tracks.back();
}

void Follow(RankView& view, OpenOperations& open, const JournalEvent& event, std::size_t index) {
  Track& track = TrackOf(view, event.communicator);
  const bool enqueue = event.kind == EventKind::kEnqueue;
  if (enqueue && event.sequence == 0) {
    track = {.communicator = event.communicator, .lives = track.lives + 1, .begin = index};
    open.Forget(event.communicator);
  }
  track.point_to_point = track.point_to_point || event.collective == Collective::kSend ||
                         event.collective == Collective::kRecv;
  const bool is_new = enqueue && event.sequence >= track.queued;
  const std::uint64_t after = event.sequence + 1;
  track.queued = std::max(track.queued, after);
  if (!enqueue) track.started = std::max(track.started, after);
  const bool left = event.kind == EventKind::kEnd;
  track.next = std::max(track.next, left ? after : event.sequence);
  if (left || event.kind == EventKind::kError) {
    open.End(event);
  } else {
    open.Begin(event, is_new);
  }
}

}  // namespace

Step Track::StepAt(std::uint64_t sequence) const {
  if (next > sequence) return Step::kLeft;
  // One that reported an error is in it for ever: it did its part or not, nobody knows.
  if (started > sequence) return Step::kStarted;
  return queued > sequence ? Step::kEnqueued : Step::kNotEntered;
}

bool RankView::newest_collective_failed() const {
  return open == nullptr && !evidence->idle && last_collective != nullptr &&
         last_collective->kind == EventKind::kError;
}

bool RankView::reported_error() const {
  return !evidence->error.empty() || newest_collective_failed();
}

const Track* RankView::On(int group) const {
  if (group == kUnknownGroup) return nullptr;
  const auto found = std::find_if(tracks.begin(), tracks.end(),
                                  [&](const Track& track) { return track.group == group; });
  return found == tracks.end() ? nullptr : &*found;
}

const Track* RankView::OnCommunicator(std::uint16_t communicator) const {
  const auto found = std::find_if(tracks.begin(), tracks.end(), [&](const Track& track) {
    return track.communicator == communicator;
  });
  return found == tracks.end() ? nullptr : &*found;
}

bool IsCollective(const JournalEvent& event) {
  return event.kind == EventKind::kEnqueue || event.kind == EventKind::kStart ||
         event.kind == EventKind::kEnd || event.kind == EventKind::kError;
}

RankView ViewOf(const RankEvidence& evidence) {
  RankView view;
  view.evidence = &evidence;
  OpenOperations open;
  const auto& events = evidence.journal.events;
  for (std::size_t index = 0; index < events.size(); ++index) {
    const JournalEvent& event = events[index];
    if (IsCollective(event)) {
      view.last_collective = &event;
      Follow(view, open, event, index);
    } else if (event.kind == EventKind::kCase) {
      open.Clear();  // what an earlier case left behind is not what the rank is in
    } else if (event.kind == EventKind::kExit) {
      view.announced_exit = true;
    }
  }
  if (!events.empty()) {
    view.last = &events.back();
    view.phase = events.back().phase;
  }
  for (const JournalEvent* event : open.list()) {
    if (view.open == nullptr) view.open = event;
    Track& track = TrackOf(view, event->communicator);
    if (track.open != nullptr) continue;
    track.open = event;
    track.next = event->sequence;
  }
  return view;
}

const JournalEvent* EventAt(const RankView& view, int group, std::uint64_t sequence,
                            std::uint32_t case_index) {
  const Track* track = view.On(group);
  if (track == nullptr) return nullptr;
  const auto& events = view.evidence->journal.events;
  for (std::size_t i = events.size(); i > track->begin; --i) {
    const JournalEvent& event = events[i - 1];
    if (event.communicator == track->communicator && IsCollective(event) &&
        event.sequence == sequence && event.case_index == case_index) {
      return &event;
    }
  }
  return nullptr;
}

std::string WhereOf(const RankView& view) {
  if (view.open != nullptr) return DescribeInvocation(*view.open);
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
  if (view.open != nullptr || view.newest_collective_failed()) return "in " + where;
  if (view.last == nullptr || where.starts_with("between")) return where;
  return "while " + where;
}

}  // namespace lockstep
