// Events in, findings out: calls and requests. The life of objects is in objects.cc, messages are
// in messages.cc, collectives in collectives.cc, arguments in arguments.cc, the texts of a
// standstill in standstill.cc.
#include "watch/judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;
using events::Object;
using events::Phase;

namespace {

// Causes after which ranks may wait for each other without being at fault themselves.
bool MayHang(Cause cause) {
  return cause != Cause::kUnsafeOrder && cause != Cause::kStoppedRank &&
         cause != Cause::kDatatypeMismatch && cause != Cause::kOperatorMismatch &&
         cause != Cause::kLostMessage && cause < Cause::kUnfinishedRequest;
}

// Of a collective of neighbours.
std::vector<int> SourcesOf(const OpenCall& open) {
  std::vector<int> sources;
  if (FactsOf(open.event.call).sync != events::Sync::kNeighbors) return sources;
  for (const Event& part : open.parts) sources.push_back(part.peer);
  return sources;
}

void NoteInGroup(const Event& event, Rank* rank) {
  rank->open[event.thread].event = event;
  if (event.count2 != 0) rank->last = event;
}

}  // namespace

int History::WorldRank(std::uint64_t comm, int member) const {
  const auto found = communicators.find(comm);
  if (found == communicators.end() || found->second.inter) return -1;
  const Communicator& there = found->second;
  if (member < 0 || member >= there.size) return -1;
  return there.world[static_cast<std::size_t>(member)];
}

int History::RankIn(int rank, std::uint64_t comm) const {
  const auto& in = ranks[static_cast<std::size_t>(rank)].in;
  const auto found = in.find(comm);
  return found == in.end() ? -1 : found->second;
}

const Membership& History::MembershipIn(int rank, std::uint64_t comm) {
  Rank& mine = ranks[static_cast<std::size_t>(rank)];
  if (mine.newest.comm && mine.newest.name == comm) return mine.newest;
  const auto found = communicators.find(comm);
  mine.newest = {comm, found == communicators.end() ? nullptr : &found->second, RankIn(rank, comm)};
  return mine.newest;
}

Judge::Judge(int size, Locate locate, Options options)
    : locate_(std::move(locate)), options_(options) {
  history_.size = size;
  history_.ranks.resize(static_cast<std::size_t>(size));
}

void Judge::TakeOne(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  mine.begun = true;
  switch (events::BeforeLeft(event.phase)) {
    case Phase::kPart:
      mine.parts[event.thread].push_back(event);
      break;
    case Phase::kEnter:
      Enter(rank, event);
      break;
    case Phase::kDone:
      Done(rank, event);
      break;
    case Phase::kLeave:
      Leave(rank, event);
      break;
    case Phase::kMade:
      MadeObject(rank, event);
      break;
    case Phase::kMembers:
      NoteMembers(event);
      break;
    case Phase::kFreed:
      Freed(rank, event.request);
      break;
    case Phase::kNothing:
    case Phase::kEnterLeft:
    case Phase::kDoneLeft:
    case Phase::kAgain:
      break;
  }
  if (events::HasLeft(event.phase)) Leave(rank, event);
}

void Judge::Take(int rank, std::span<const Event> some) {
  while (!some.empty()) {
    const bool over = some.front().phase == Phase::kEnterLeft && !options_.races;
    some = some.subspan(over ? PassCollectives(rank, some) : 0);
    if (some.empty()) break;
    TakeOne(rank, some.front());
    some = some.subspan(1);
  }
}

void Judge::Enter(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  mine.threads[event.thread] = true;
  if (events::OfGroup(event.call)) NoteInGroup(event, &mine);
  const bool named = !events::OfGroup(event.call) || event.comm != events::kUnknownComm;
  history_.smaller_groups = history_.smaller_groups || !named;
  OpenCall open;
  open.event = event;
  open.parts.swap(mine.parts[event.thread]);
  bool right = CheckArguments(rank, event);
  for (const Event& part : open.parts) {
    const bool waits = part.request != 0 && FactsOf(event.call).call_class != Class::kPostExchange;
    if (!waits) right = CheckArguments(rank, part) && right;
  }
  if (right) Follow(rank, open);
  if (options_.races) NoteHeard(rank, event);
  if (events::OfNccl(event.call)) FollowNccl(rank, event);
  mine.misused = mine.misused || !right;
  if (event.call == Call::kAbort) {
    mine.aborted = true;
    Add(Cause::kAborted, {rank},
        fmt::format("rank {} called MPI_Abort({}) at {}", rank, event.peer, At(rank, event.site)),
        event.site);
  }
  if (event.call == Call::kCancel) {
    for (const Event& part : open.parts) Release(rank, part.request, event.call);
  }
  mine.open[event.thread] = std::move(open);
}

std::string Judge::Named(int rank, const Event& call) const {
  const char* const name = FactsOf(call.call).name;
  if (!events::OfGroup(call.call)) return fmt::format("{} at {}", name, At(rank, call.site));
  if (call.count2 == 0) return name;
  const std::string where = call.site != 0 ? " at " + At(rank, call.site) : WhereNow(rank, call);
  return fmt::format("{} {}{}", name, call.count2, where);
}

// Where the program is now is where it called this, while it is in the call. NCCL's return before
// anybody can look.
std::string Judge::WhereNow(int rank, const Event& group_call) const {
  for (const auto& [thread, open] : history_.ranks[Index(rank)].open) {
    if (open.event.call != group_call.call || open.event.count2 != group_call.count2) continue;
    const std::string where = At(rank, group_call.site);
    if (where.empty()) return where;
    return events::OfNccl(group_call.call) ? fmt::format(" (now at {})", where) : " at " + where;
  }
  return {};
}

// What a call with right arguments begins: messages, requests, collectives, the end.
void Judge::Follow(int rank, OpenCall& open) {
  const Event& event = open.event;
  Rank& mine = history_.ranks[Index(rank)];
  switch (FactsOf(event.call).call_class) {
    case Class::kSend:
      open.message = Send(rank, event);
      break;
    case Class::kExchange:
      if (!open.parts.empty()) open.message = Send(rank, open.parts.front());
      open.order = ++history_.last_order;
      break;
    case Class::kReceive:
      open.order = ++history_.last_order;
      break;
    case Class::kStart:
      for (const Event& part : open.parts) Start(rank, part.request);
      break;
    case Class::kCollective:
      EnterBlocking(rank, open);
      break;
    case Class::kWindow:
      EnterWindow(history_, rank, open);
      break;
    case Class::kLocal:
      history_.spawns = history_.spawns || event.call == Call::kComm_spawn ||
                        event.call == Call::kComm_spawn_multiple;
      break;
    case Class::kNotFollowed:
      not_followed_.insert(event.call);
      unseen_ways_ = true;
      break;
    case Class::kFinalize:
      mine.finalizing = true;
      TellUnfinished(rank);
      NothingMoreFrom(rank, false);
      TellLostMessages();
      break;
    default:
      Post(rank, open);
      break;
  }
}

// What leaves a request.
void Judge::Post(int rank, const OpenCall& open) {
  const Event& event = open.event;
  Rank& mine = history_.ranks[Index(rank)];
  const auto request_of = [&mine](const Event& posted) -> Request& {
    return mine.requests[posted.request] = {posted, (posted.flags & events::kPersistent) != 0, true,
                                            true};
  };
  const auto requested = [&]() -> Request& { return request_of(event); };
  switch (FactsOf(event.call).call_class) {
    case Class::kPostSend:
      requested().message = Send(rank, event);
      break;
    case Class::kPostExchange:
      for (const Event& send : open.parts) request_of(send).message = Send(rank, send);
      [[fallthrough]];
    case Class::kPostReceive:
      requested().order = ++history_.last_order;
      mine.posted[history_.last_order] = event.request;
      break;
    case Class::kPostLocal:
      requested();
      break;
    case Class::kPrepare:
      requested().active = false;
      mine.requests[event.request].started = false;
      break;
    case Class::kPostCollective: {
      Request& request = requested();
      request.place = EnterCollective(rank, event);
      request.place.sources = SourcesOf(open);
      break;
    }
    default:
      break;
  }
}

void Judge::EnterBlocking(int rank, OpenCall& open) {
  open.place = EnterCollective(rank, open.event);
  open.place.sources = SourcesOf(open);
  const bool leads = open.event.call == Call::kIntercomm_create && !open.parts.empty();
  if (leads) open.leaders = EnterCollective(rank, open.parts.front());
}

// A request that the program gives up: what it was for goes on without it. Whether it could be
// cancelled is told to who waits for it, and to nobody else.
void Judge::Release(int rank, std::uint32_t number, Call call) {
  Rank& mine = history_.ranks[Index(rank)];
  const auto found = mine.requests.find(number);
  if (found == mine.requests.end()) return;
  if (call == Call::kCancel) {
    found->second.cancelled = true;
    return StopComparing(rank, found->second.event);
  }
  const Request request = found->second;
  mine.requests.erase(found);
  mine.posted.erase(request.order);
  const Event& receive = request.event;
  if (!request.active || request.order == 0 || request.cancelled) return;
  if (receive.peer < 0 || receive.tag < 0) return StopComparing(rank, receive);
  Received(rank, receive, request.order, receive.peer, receive.tag, false);
}

void Judge::Start(int rank, std::uint32_t number) {
  Rank& mine = history_.ranks[Index(rank)];
  const auto found = mine.requests.find(number);
  if (found == mine.requests.end()) return;
  Request& request = found->second;
  if (request.active) {
    Add(Cause::kStartedTwice, {rank},
        fmt::format("rank {} starts a request twice; it comes from {} at {}", rank,
                    FactsOf(request.event.call).name, At(rank, request.event.site)),
        request.event.site);
    return;
  }
  request.active = request.started = true;
  if ((request.event.flags & events::kReceiving) != 0) {
    request.order = ++history_.last_order;
    mine.posted[request.order] = number;
  } else {
    request.message = Send(rank, request.event);
  }
}

// A receive without a request got its message.
void Judge::Got(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  const auto open = mine.open.find(event.thread);
  const bool known = (event.flags & (events::kNoMessage | events::kCancelled)) == 0;
  if (open == mine.open.end() || !known || event.peer < 0) return;
  const bool blocked = FactsOf(event.call).call_class != Class::kTest;
  if (open->second.order == 0) open->second.order = ++history_.last_order;
  Received(rank, open->second.event, open->second.order, event.peer, event.tag, blocked);
  open->second.order = 0;
}

// … one with a request did.
void Judge::GotAsked(int rank, const Request& request, const Event& event) {
  const bool known = (event.flags & events::kNoMessage) == 0;
  const int source = known ? event.peer : request.event.peer;
  const int tag = known && event.tag >= 0 ? event.tag : request.event.tag;
  const bool blocked = FactsOf(event.call).call_class == Class::kWaitAll;
  if (source >= 0 && tag >= 0) {
    Received(rank, request.event, request.order, source, tag, blocked);
  } else if (!known) {
    StopComparing(rank, request.event);
  }
}

// What a call got is known when the library has returned. A process that has no processor may stay
// between these words and the last one of its call.
void Judge::Done(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  const auto open = mine.open.find(event.thread);
  if (open != mine.open.end()) open->second.over = true;
  if (event.request == 0) return Got(rank, event);
  const auto found = mine.requests.find(event.request);
  if (found == mine.requests.end()) return;
  Request& request = found->second;
  request.waited = true;
  mine.posted.erase(request.order);
  if (request.active && request.order != 0 && (event.flags & events::kCancelled) == 0) {
    GotAsked(rank, request, event);
  }
  if (request.event.peer == events::kAnySource) {
    // What later receives took may be certain now.
    for (const ChannelKey& key : std::set(mine.unsettled)) Settle(key, history_.channels.at(key));
  }
  Withdraw(rank, request, event);
  request.active = request.cancelled = false;
  request.order = 0;
  if (!request.persistent) mine.requests.erase(found);
}

// A receive that returned an error may have taken its message.
void Judge::Failed(int rank, std::uint16_t thread) {
  TellUnfit(rank);
  const OpenCall& open = history_.ranks[Index(rank)].open[thread];
  if (open.order != 0 && !open.over) StopComparing(rank, open.event);
}

void Judge::Succeeded(int rank, const OpenCall& open) {
  if (open.event.call == Call::kRequest_free) {
    for (const Event& part : open.parts) Release(rank, part.request, Call::kRequest_free);
  }
  if (FactsOf(open.event.call).call_class == Class::kWindow) LeaveWindow(history_, rank, open);
}

void Judge::Leave(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  if (events::OfGroup(event.call) && event.peer != 0) {
    mine.failed = true;
    const auto comm = history_.communicators.find(mine.open[event.thread].event.comm);
    if (comm != history_.communicators.end() && comm->second.enqueued) comm->second.broken = true;
  }
  const bool failed = event.phase == Phase::kLeave && event.peer > 0;
  if (failed && !events::OfGroup(event.call)) Failed(rank, event.thread);
  const auto open = mine.open.find(event.thread);
  if (!failed && open != mine.open.end()) Succeeded(rank, open->second);
  mine.open.erase(event.thread);
  if (event.call != Call::kFinalize) return;
  mine.finalized = true;
  TellLeaks(rank);
}

std::vector<Finding> Judge::Tell() {
  std::erase_if(unnamed_races_, [&](const auto& race) {
    return TellSources(race.first.first, race.second.first, race.second.second);
  });
  std::erase_if(open_races_, [&](const auto& race) { return DecideRace(race.first, race.second); });
  return std::exchange(findings_, {});
}

Finding* Judge::Add(Cause cause, std::vector<int> culprits, std::string text, std::uint64_t site,
                    bool proved) {
  // Each process has addresses of its own; the line is the same in all.
  const std::string where = site == 0 ? std::string() : At(culprits.front(), site);
  if (!told_.insert({cause, where}).second) return nullptr;
  explained_ = explained_ || MayHang(cause);
  return &Found(cause, std::move(culprits), std::move(text), proved);
}

Finding& Judge::Found(Cause cause, std::vector<int> culprits, std::string text, bool proved) {
  std::sort(culprits.begin(), culprits.end());
  culprits.erase(std::unique(culprits.begin(), culprits.end()), culprits.end());
  const Rank& first = history_.ranks[Index(culprits.front())];
  const bool in_group = first.in_group && first.last.site == 0;  // not in a program of C++
  return findings_.emplace_back(cause, std::move(culprits), proved, false, in_group,
                                std::move(text));
}

}  // namespace lockstep::watch::judge
