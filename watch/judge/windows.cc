// Epochs are counted by origin and target, because the events of either may be read first. A
// library may keep what an origin puts until its target has posted, so those needs are soft. It may
// also return from a lock that it has not got yet. So who is in a call of the window may be the one
// that holds the lock, and goes on. A rank that locked it and is elsewhere keeps the others out
// until it unlocks, unless it never got it. Then who waits for it would have gone on by the second
// look.
#include "watch/judge/windows.h"

#include <algorithm>

#include "watch/judge/history.h"
#include "watch/judge/wait_graph.h"

namespace lockstep::watch::judge {
namespace {

using events::Class;
using events::FactsOf;

std::vector<int> Named(const OpenCall& open) {
  std::vector<int> ranks;
  for (const Event& part : open.parts) ranks.push_back(part.peer);
  return ranks;
}

// The members that a call of locks is about: one, or all that the rank has locked.
std::vector<int> Locked(const Window& window, int rank, const Event& event) {
  if (event.peer >= 0) return {event.peer};
  std::vector<int> targets;
  for (const auto& [target, holders] : window.locks) {
    if (holders.count(rank) > 0) targets.push_back(target);
  }
  return targets;
}

void Lock(const History& history, Window& window, int rank, const Event& event) {
  const auto comm = history.communicators.find(event.comm);
  if (comm == history.communicators.end()) return;
  for (int member = 0; member < comm->second.size; ++member) {
    if (event.peer >= 0 && event.peer != member) continue;
    window.locks[member][rank] = (event.flags & events::kExclusive) != 0;
  }
}

void Unlock(Window& window, int rank, const Event& event) {
  for (const int target : Locked(window, rank, event)) window.locks[target].erase(rank);
}

// It is in a call of this window, and may go on there.
bool IsInside(const History& history, int rank, std::uint64_t window) {
  return std::ranges::any_of(history.ranks[Index(rank)].open, [window](const auto& each) {
    const Event& event = each.second.event;
    return event.comm == window && FactsOf(event.call).call_class == Class::kWindow;
  });
}

std::vector<Need> NeedsOfLock(const History& history, const Window& window, int rank,
                              const Event& event) {
  std::vector<Need> needs;
  for (const int member : Locked(window, rank, event)) {
    const auto found = window.locks.find(member);
    if (found == window.locks.end() || found->second.count(rank) == 0) continue;
    const bool alone = found->second.at(rank);
    Need need{{}, true, &event};
    for (const auto& [holder, exclusive] : found->second) {
      if (holder == rank || (!alone && !exclusive)) continue;
      if (!IsInside(history, holder, event.comm)) need.any_of.push_back(holder);
    }
    if (need.any_of.empty()) continue;
    const int target = history.WorldRank(event.comm, member);
    if (target < 0) return {};
    if (target != rank) need.any_of.push_back(target);  // a library may need its help
    needs.push_back(std::move(need));
  }
  return needs;
}

// A target waits for origins that have not completed.
std::vector<Need> NeedsOfTarget(const Window& window, int rank, const Event& event) {
  std::vector<Need> needs;
  const auto origins = window.origins.find(rank);
  if (origins == window.origins.end()) return needs;
  for (const int origin : origins->second) {
    const Window::Pair& pair = window.pairs.at({origin, rank});
    if (pair.completed >= pair.posted) continue;
    needs.push_back({{origin}, pair.completing >= pair.posted, &event});
  }
  return needs;
}

// An origin waits for targets that have not posted.
std::vector<Need> NeedsOfOrigin(const Window& window, int rank, const Event& event, bool* pending) {
  std::vector<Need> needs;
  const auto targets = window.targets.find(rank);
  if (targets == window.targets.end()) return needs;
  for (const int target : targets->second) {
    const Window::Pair& pair = window.pairs.at({rank, target});
    if (pair.posted < pair.started) needs.push_back({{target}, true, &event});
  }
  *pending = event.call == Call::kWin_complete && needs.size() < targets->second.size();
  return needs;
}

}  // namespace

void EnterWindow(History& history, int rank, const OpenCall& open) {
  const Event& event = open.event;
  if (event.comm <= events::kFreedComm) return;
  Window& window = history.windows[event.comm];
  switch (event.call) {
    case Call::kWin_post:
      window.origins[rank] = Named(open);
      for (const int origin : window.origins[rank]) ++window.pairs[{origin, rank}].posted;
      break;
    case Call::kWin_start:
      window.targets[rank] = Named(open);
      for (const int target : window.targets[rank]) ++window.pairs[{rank, target}].started;
      break;
    case Call::kWin_complete:
      for (const int target : window.targets[rank]) ++window.pairs[{rank, target}].completing;
      break;
    case Call::kWin_lock:
    case Call::kWin_lock_all:
      Lock(history, window, rank, event);
      break;
    default:
      break;
  }
}

void LeaveWindow(History& history, int rank, const OpenCall& open) {
  const Event& event = open.event;
  const auto found = history.windows.find(event.comm);
  if (found == history.windows.end()) return;
  Window& window = found->second;
  switch (event.call) {
    case Call::kWin_complete:
      for (const int target : window.targets[rank]) ++window.pairs[{rank, target}].completed;
      window.targets.erase(rank);
      break;
    case Call::kWin_wait:
    case Call::kWin_test:
      window.origins.erase(rank);
      break;
    case Call::kWin_unlock:
    case Call::kWin_unlock_all:
      Unlock(window, rank, event);
      break;
    default:
      break;
  }
}

std::vector<Need> NeedsOfWindow(const History& history, int rank, const OpenCall& open,
                                bool* pending) {
  const Event& event = open.event;
  const auto found = history.windows.find(event.comm);
  if (found == history.windows.end()) return {};
  switch (event.call) {
    case Call::kWin_wait:
      return NeedsOfTarget(found->second, rank, event);
    case Call::kWin_start:
    case Call::kWin_complete:
      return NeedsOfOrigin(found->second, rank, event, pending);
    case Call::kWin_post:
    case Call::kWin_test:
      return {};
    default:
      return NeedsOfLock(history, found->second, rank, event);
  }
}

}  // namespace lockstep::watch::judge
