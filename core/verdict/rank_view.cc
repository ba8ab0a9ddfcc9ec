// One pass over a journal makes the view: which calls are open, how far each communicator came.
// Below are the predicates that all finders share: gone, failed, finished in order.
#include "core/verdict/rank_view.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "core/verdict/headline.h"
#include "core/verdict/messages.h"

namespace lockstep::verdict {
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
    std::erase_if(open_, [&](const JournalEvent* e) {
      return e->communicator == communicator && !journal::IsSplit(e->kind);
    });
  }
  void Clear() { open_.clear(); }
  const std::vector<const JournalEvent*>& list() const { return open_; }

 private:
  const JournalEvent** Find(const JournalEvent& event) {
    for (const JournalEvent*& known : open_) {
      if (known->sequence == event.sequence && known->communicator == event.communicator &&
          journal::IsSplit(known->kind) == journal::IsSplit(event.kind)) {
        return &known;
      }
    }
    return nullptr;
  }
  std::vector<const JournalEvent*> open_;
};

Track& FindOrAdd(RankView& view, const JournalEvent& event) {
  for (Track& track : view.tracks) {
    if (IsOn(track, event)) return track;
  }
  view.tracks.push_back(
      {.communicator = event.communicator, .making = journal::IsSplit(event.kind)});
  return view.tracks.back();
}

// It will not go on with the operation: it left it, or failed in it.
bool Ends(const JournalEvent& event) {
  return event.kind == EventKind::kEnd || event.kind == EventKind::kError ||
         event.kind == EventKind::kSplitEnd;
}

// Positions of both ends agree in a lane.
bool CountsMessages(const JournalEvent& event) {
  return event.communicator < kFirstLane && StandsAmongMessages(event);
}

void Follow(RankView& view, OpenOperations& open, const JournalEvent& event, std::size_t index) {
  Track& track = FindOrAdd(view, event);
  const bool enqueue = event.kind == EventKind::kEnqueue;
  const bool begins = enqueue || event.kind == EventKind::kSplit;
  if (begins && event.sequence == 0) {
    track = {.communicator = event.communicator,
             .making = track.making,
             .lives = track.lives + 1,
             .begin = index};
    if (enqueue) open.Forget(event.communicator);
  }
  track.point_to_point = track.point_to_point || CountsMessages(event);
  const bool is_new = begins && event.sequence >= track.queued;
  const std::uint64_t after = event.sequence + 1;
  track.queued = std::max(track.queued, after);
  if (!enqueue) track.started = std::max(track.started, after);
  const bool made = event.kind == EventKind::kSplitEnd && event.value == 0;
  const bool left = event.kind == EventKind::kEnd || made;
  track.next = std::max(track.next, left ? after : event.sequence);
  if (Ends(event)) {
    open.End(event);
  } else {
    open.Begin(event, is_new);
  }
}

// An error is of the rank's end unless the rank went on after it.
void FollowError(RankView& view, const JournalEvent& event) {
  const JournalEvent*& first = view.first_error;
  if (event.kind == EventKind::kError && first == nullptr && !view.announced_exit) first = &event;
  const bool went_on = event.kind == EventKind::kEnd && first != nullptr &&
                       event.communicator == first->communicator &&
                       event.sequence > first->sequence;
  if (went_on) first = nullptr;
}

}  // namespace

CallStep Track::StepAt(std::uint64_t sequence) const {
  if (next > sequence) return CallStep::kLeft;
  // One that reported an error is in it for ever: it did its part or not, nobody knows.
  if (started > sequence) return CallStep::kStarted;
  return queued > sequence ? CallStep::kEnqueued : CallStep::kNotEntered;
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
  const auto found = std::ranges::find(tracks, group, &Track::group);
  return found == tracks.end() ? nullptr : &*found;
}

const Track* RankView::TrackOf(const JournalEvent& event) const {
  const auto found =
      std::ranges::find_if(tracks, [&](const Track& track) { return IsOn(track, event); });
  return found == tracks.end() ? nullptr : &*found;
}

bool IsCollective(const JournalEvent& event) { return journal::IsOfCall(event.kind); }

bool IsOn(const Track& track, const JournalEvent& event) {
  return track.communicator == event.communicator && track.making == journal::IsSplit(event.kind) &&
         (track.making || IsCollective(event));
}

std::optional<JournalEvent> OperationIn(const JournalEvent* open) {
  if (open == nullptr || journal::IsSplit(open->kind)) return std::nullopt;
  return *open;
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
      view.failed_split = nullptr;
      Follow(view, open, event, index);
      FollowError(view, event);
    } else if (journal::IsSplit(event.kind)) {
      const bool failed = event.kind == EventKind::kSplitEnd && event.value != 0;
      view.failed_split = failed ? &event : nullptr;
      Follow(view, open, event, index);
    } else if (event.kind == EventKind::kCase) {
      open.Clear();  // what an earlier case left behind is not what the rank is in
      view.first_error = nullptr;
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
    Track& track = FindOrAdd(view, *event);
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
    if (IsOn(*track, event) && event.sequence == sequence && event.case_index == case_index) {
      return &event;
    }
  }
  return nullptr;
}

std::string WhereOf(const RankView& view, DescribeCall call) {
  if (const JournalEvent* const failed = FailedCallOf(view)) return call(*failed);
  if (view.open != nullptr) return call(*view.open);
  if (view.evidence->state == ProcessState::kLost) return "unknown: its agent does not answer";
  if (view.last == nullptr) return "before its first journal event";
  if (view.newest_collective_failed()) return call(*view.last_collective);
  std::string text(Doing(view.phase));
  // Who failed leaves because of that.
  if (view.announced_exit && !Failed(view)) {
    text = "leaving";
  } else if (view.evidence->idle) {
    text = "waiting for an order";
  }
  if (view.last_collective != nullptr) text += " after " + call(*view.last_collective);
  return text;
}

std::string InOrWhile(const RankView& view, DescribeCall call) {
  const std::string where = WhereOf(view, call);
  const bool in_call = view.open != nullptr || view.newest_collective_failed();
  if (in_call || FailedCallOf(view) != nullptr) return "in " + where;
  if (view.last == nullptr || where.starts_with("between")) return where;
  return "while " + where;
}

std::string Who(const std::vector<const RankEvidence*>& ranks) {
  std::vector<int> numbers;
  for (const RankEvidence* rank : ranks) numbers.push_back(rank->rank);
  std::string text = FormatRanks(numbers);
  const RankEvidence& first = *ranks.front();
  const bool one_host = std::ranges::all_of(
      ranks, [&](const RankEvidence* rank) { return rank->host == first.host; });
  if (first.host.empty() || !one_host) return text;
  const std::string pid =
      ranks.size() == 1 && first.pid > 0 ? fmt::format(", pid {}", first.pid) : "";
  return fmt::format("{} (host {}{})", text, first.host, pid);
}

std::vector<int> RanksOf(const Views& views) {
  std::vector<int> ranks;
  for (const RankView* view : views) ranks.push_back(view->rank());
  return ranks;
}

Views ViewsAt(const std::vector<RankView>& views, const std::vector<std::size_t>& indices) {
  Views those;
  for (const std::size_t i : indices) those.push_back(&views[i]);
  return those;
}

std::string Who(const Views& ranks) {
  std::vector<const RankEvidence*> evidence;
  for (const RankView* view : ranks) evidence.push_back(view->evidence);
  return Who(evidence);
}

std::string SystemClauseBriefly(const RankView& view) {
  const std::string_view system = view.evidence->system;
  const std::string text =
      FirstWords(system.substr(0, std::min(system.find_first_of(",;[<"), system.size())), 6);
  if (text.empty()) return view.evidence->asleep ? ": asleep" : "";
  // A function is written as one: "asleep in pause()".
  const bool call = text.starts_with("asleep in ") && text.find(' ', 10) == std::string::npos;
  if (call) return ": " + text + "()";
  return (view.evidence->asleep && !text.starts_with("asleep") ? ": asleep: " : ": ") + text;
}

namespace {

// How much an error says of its cause: nothing where all that it says is that a peer went away.
constexpr int kWaited = 2;
constexpr int kOwnReason = 3;
int WeightOf(std::string_view error) {
  constexpr std::pair<std::string_view, int> kOfConnections[] = {
      {"reset by peer", 1},
      {"closed by peer", 0},
      {"Broken pipe", 0},
      {"remote process exited", 0}};  // NCCL's ncclRemoteError
  for (const auto& [words, weight] : kOfConnections) {
    if (error.find(words) != std::string_view::npos) return weight;
  }
  if (WaitedInVain(error)) return kWaited;
  return error.empty() ? 0 : kOwnReason;
}

}  // namespace

bool EndedBySelf(int signal) {
  constexpr int kOwn[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
  return std::ranges::find(kOwn, signal) != std::end(kOwn);
}

bool Failed(const RankView& view) {
  return (view.running() || view.evidence->state == ProcessState::kExited) && view.reported_error();
}

const JournalEvent* FailedCallOf(const RankView& view) {
  if (!Failed(view) || (view.evidence->idle && view.open == nullptr)) return nullptr;
  if (view.first_error != nullptr) return view.first_error;
  return view.newest_collective_failed() ? view.last_collective : nullptr;
}

bool OwesProgress(const RankView& view) {
  return view.running() && !view.evidence->idle && !view.reported_error();
}

bool FinishedInOrder(const RankView& view) {
  return view.evidence->state == ProcessState::kExited && view.evidence->exit_code == 0 &&
         view.evidence->error.empty() && view.open == nullptr &&
         (view.announced_exit || view.evidence->idle);
}

bool IsDeparted(const RankView& view) {
  return view.evidence->state == ProcessState::kSignalled ||
         view.evidence->state == ProcessState::kStopped ||
         (view.evidence->state == ProcessState::kExited && !Failed(view));
}

bool IsGone(const RankView& view) { return IsDeparted(view) || Failed(view); }

const JournalEvent* FirstErrorOf(const RankView& view) { return FirstErrorOf(*view.evidence); }

const JournalEvent* FirstErrorOf(const RankEvidence& evidence) {
  const auto& events = evidence.journal.events;
  const auto found = std::ranges::find_if(events, [](const JournalEvent& event) {
    return event.kind == EventKind::kError || event.kind == EventKind::kExit;
  });
  return found == events.end() || found->kind == EventKind::kExit ? nullptr : &*found;
}

std::string FateOf(const RankView& view) {
  const RankEvidence& evidence = *view.evidence;
  if (Failed(view)) return "reported an error";
  switch (evidence.state) {
    case ProcessState::kExited:
      return fmt::format("exited with code {}", evidence.exit_code);
    case ProcessState::kSignalled:
      return fmt::format("{} {}", EndedBySelf(evidence.signal) ? "crashed with" : "was killed by",
                         SignalName(evidence.signal));
    case ProcessState::kStopped:
      return fmt::format("is stopped by {}", SignalName(evidence.signal));
    case ProcessState::kRunning:
    case ProcessState::kLost:
      break;
  }
  return "is gone";
}

bool IsEcho(std::string_view error) { return !error.empty() && WeightOf(error) < kWaited; }

bool WaitedInVain(std::string_view error) {
  // A kernel has no route to a neighbour that does not answer.
  constexpr std::string_view kWords[] = {"in time",         "imed out",      "imeout",
                                         "deadline",        "return within", "complete within",
                                         "No route to host"};
  return std::ranges::any_of(
      kWords, [&](std::string_view words) { return error.find(words) != std::string_view::npos; });
}

bool SaysLess(std::string_view error, std::string_view than) {
  return WeightOf(error) < WeightOf(than);
}

}  // namespace lockstep::verdict
