// What the library writes down, and what it knows of ranks that wait.
#include <algorithm>

#include "watch/fuzz/library.h"

namespace lockstep::watch::fuzz {

Event Library::EventOf(events::Phase phase, const Action& action) const {
  Event event;
  event.phase = phase;
  event.call = action.call;
  event.thread = 1;
  event.site = Index(action.line);
  event.peer = events::kNoRoot;
  event.tag = events::kNoOp;
  event.request = action.request;
  if (!action.requests.empty() || action.call == Call::kFinalize) return event;
  event.comm = NameOfComm(action.comm);
  event.type = action.type;
  event.count = action.call == Call::kSendrecv && phase == events::Phase::kEnter ? RoomOf(action)
                                                                                 : action.count;
  if (IsCollective(action.call)) {
    const events::Sync sync = events::FactsOf(action.call).sync;
    const bool rooted = sync == events::Sync::kRoot || sync == events::Sync::kAtRoot;
    event.peer = rooted ? action.root : events::kNoRoot;
    return event;
  }
  event.flags = FlagsOf(action.call);
  event.peer =
      action.peer == kAny ? events::kAnySource : MemberOf(program_, action.comm, action.peer);
  event.tag = action.tag == kAny ? events::kAnyTag : action.tag;
  return event;
}

void Library::WriteParts(int rank, const Action& action) {
  Event part = EventOf(events::Phase::kPart, action);
  if (action.call == Call::kSendrecv) {
    part.flags = 0;
    Write(rank, part);
  }
  for (const std::uint32_t request : action.requests) {
    part.request = request;
    Write(rank, part);
  }
}

void Library::WriteDone(int rank, const Action& action, std::uint32_t request, int receive) {
  Event event;
  event.phase = events::Phase::kDone;
  event.call = action.call;
  event.thread = 1;
  event.request = request;
  event.flags = receive < 0 ? events::kNoMessage : 0;
  if (receive >= 0) {
    posted_[Index(receive)].known = true;
    const Sent& message = sent_[Index(posted_[Index(receive)].message)];
    event.peer = MemberOf(program_, message.action.comm, message.source);
    event.tag = message.action.tag;
  }
  Write(rank, event);
}

std::set<int> Library::Sources(int rank, const Action& action) const {
  if (action.peer != kAny) return {action.peer};
  std::set<int> need(program_.comms[action.comm].begin(), program_.comms[action.comm].end());
  need.erase(rank);
  return need;
}

// Whom MPI lets it wait for; else any that is missing, because how the library passes data on is
// its own business.
void Library::NeedsOfCollective(int rank, const RequestState& request,
                                std::vector<RankNeed>& needs) const {
  const Action& action = request.action;
  const Place& there = places_[action.comm][request.position - 1];
  const std::vector<int>& members = program_.comms[action.comm];
  const auto me = Index(MemberOf(program_, action.comm, rank));
  const auto root = Index(action.root);
  RankNeed others{{}, true};
  for (std::size_t member = 0; member < members.size(); ++member) {
    if (there.came[member]) continue;
    const events::Sync sync = events::FactsOf(action.call).sync;
    const bool must = sync == events::Sync::kAll ||
                      (sync == events::Sync::kRoot && member == root) ||
                      (sync == events::Sync::kAtRoot && me == root) ||
                      (sync == events::Sync::kLower && member < me);
    if (must) {
      needs.push_back({{members[member]}, false});
    } else {
      others.any_of.insert(members[member]);
    }
  }
  if (needs.empty() && !others.any_of.empty()) needs.push_back(others);
}

void Library::AddNeeds(int rank, const RequestState& request, Blocked& blocked) const {
  if (request.position != 0) {
    if (IsOver(rank, request)) {
      blocked.pending = true;
      return;
    }
    blocked.collectives.push_back(request.action);
    return NeedsOfCollective(rank, request, blocked.needs);
  }
  if (request.message >= 0 && sent_[Index(request.message)].receive < 0) {
    const Sent& message = sent_[Index(request.message)];
    const bool soft = (FlagsOf(message.action.call) & events::kSynchronous) == 0;
    if (message.action.call != Call::kBsend) blocked.needs.push_back({{message.to}, soft});
  }
  if (request.message >= 0 && sent_[Index(request.message)].receive >= 0) {
    const Posted& taker = posted_[Index(sent_[Index(request.message)].receive)];
    blocked.pending = blocked.pending || !taker.known;
  }
  if (request.receive >= 0 && posted_[Index(request.receive)].message >= 0) blocked.pending = true;
  if (request.receive >= 0 && posted_[Index(request.receive)].message < 0) {
    blocked.needs.push_back({Sources(rank, request.action), false});
    blocked.receives.push_back(request.receive);
  }
}

const Action* Library::ActionAt(int rank) const {
  const RankState& mine = ranks_[Index(rank)];
  return mine.state == State::kInCall ? &mine.actions[mine.next] : nullptr;
}

bool Library::Waits(const std::set<int>& ranks) const {
  return std::ranges::all_of(channels_, [](const auto& channel) { return channel.empty(); }) &&
         std::ranges::all_of(
             ranks, [&](int rank) { return ActionAt(rank) != nullptr && !MayReturn(rank); });
}

std::map<int, Library::Blocked> Library::FindBlocked() const {
  std::map<int, Blocked> blocked;
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const Action* const action = ActionAt(rank);
    if (action == nullptr) continue;
    Blocked& mine = blocked[rank];
    mine.action = action;
    mine.all = events::FactsOf(action->call).call_class != events::Class::kWaitAny;
    if (action->call == Call::kProbe) mine.needs.push_back({Sources(rank, *action), false});
    const RankState& state = ranks_[Index(rank)];
    if (action->requests.empty() && action->call != Call::kProbe) {
      AddNeeds(rank, state.current, mine);
    }
    for (const std::uint32_t request : action->requests) {
      AddNeeds(rank, state.requests.at(request), mine);
    }
  }
  return blocked;
}

std::set<int> Library::FindStuck() const {
  const std::map<int, Blocked> blocked = FindBlocked();
  std::set<int> free, stuck;
  for (int rank = 0; rank < program_.ranks; ++rank) {
    if (ranks_[Index(rank)].state == State::kPolls) free.insert(rank);
    if (blocked.contains(rank)) stuck.insert(rank);
  }
  const auto met = [&](const RankNeed& need) {
    return std::ranges::any_of(need.any_of, [&](int other) { return free.contains(other); });
  };
  // A rank in which one need may be met may wait for that one only, where the library buffered
  // whatever it could.
  const auto goes_on = [&](const Blocked& wait) {
    const bool one = wait.pending || std::ranges::any_of(wait.needs, met);
    if (!wait.all) return std::ranges::any_of(wait.needs, met);
    if (!one) return false;
    return std::ranges::all_of(wait.needs,
                               [&](const RankNeed& need) { return need.soft || met(need); });
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& [rank, wait] : blocked) {
      if (free.contains(rank)) continue;
      if (!wait.needs.empty() && !goes_on(wait)) continue;
      free.insert(rank);
      stuck.erase(rank);
      progress = true;
    }
  }
  return stuck;
}

bool Library::HidesMatches() const {
  return std::ranges::any_of(posted_, [](const Posted& receive) {
    const bool wild = receive.action.peer == kAny || receive.action.tag == kAny;
    return wild && receive.message >= 0 && !receive.known;
  });
}

std::vector<std::pair<int, Action>> Library::Unawaited() const {
  std::vector<std::pair<int, Action>> all;
  for (int rank = 0; rank < program_.ranks; ++rank) {
    if (!finished(rank)) continue;
    for (const auto& [number, request] : ranks_[Index(rank)].requests) {
      all.emplace_back(rank, request.action);
    }
  }
  return all;
}

}  // namespace lockstep::watch::fuzz
