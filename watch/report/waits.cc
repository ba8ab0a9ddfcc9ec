// Sends are paired with receives, and collectives by their place in the communicator's order, as
// the judge does. A call is settled when it returned and all that it needed was seen. Ranks are
// read one after the other, so either may come first. Collectives are in collective_waits.cc.
#include "watch/report/waits.h"

#include <algorithm>
#include <utility>

namespace lockstep::watch::report {

using events::Class;
using events::FactsOf;
using events::Phase;

namespace {

constexpr std::int64_t kMostOpen = 1'000'000;
constexpr std::size_t kMostIdle = 4096;  // channels: most are used again, and to make one is slow

bool MayWait(Class call_class) {
  return call_class == Class::kSend || call_class == Class::kReceive ||
         call_class == Class::kExchange || call_class == Class::kWaitAll ||
         call_class == Class::kWaitAny || call_class == Class::kCollective ||
         call_class == Class::kFinalize;
}

}  // namespace

Waits::Waits(int size, std::size_t traced)
    : traced_(traced), ranks_(Index(size)), totals_(Index(size)) {}

void Waits::Take(int rank, const Event& event) {
  RankTotals& totals = totals_[Index(rank)];
  if (totals.begun == 0) totals.begun = event.ticks;
  totals.ended = std::max(totals.ended, event.ticks);
  switch (events::BeforeLeft(event.phase)) {
    case Phase::kPart:
      RankOf(rank).threads[event.thread].parts.push_back(event);
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
      Made(rank, event);
      break;
    case Phase::kFreed:
      Freed(rank, event);
      break;
    case Phase::kNothing:
    case Phase::kMembers:
    case Phase::kEnterLeft:
    case Phase::kDoneLeft:
    case Phase::kAgain:
      break;
  }
  if (events::HasLeft(event.phase)) Leave(rank, event);
}

Waits::Communicator* Waits::Known(std::uint64_t comm) {
  const auto found = communicators_.find(comm);
  const bool usable = found != communicators_.end() && !found->second.inter && !broken_;
  return usable ? &found->second : nullptr;
}

void Waits::CountOpen(int more) {
  open_ += more;
  if (open_ <= kMostOpen) return;
  broken_ = true;
  open_ = 0;
  channels_.clear();
  for (auto& [name, comm] : communicators_) comm.positions.clear();
}

Place Waits::PlaceOf(int rank, const Event& event) {
  Place place{event.call, event.site};
  const auto& in = RankOf(rank).in;
  const bool ends = FactsOf(event.call).call_class == Class::kFinalize;
  const auto found = in.find(ends ? events::kWorldComm : event.comm);
  if (found == in.end()) return place;
  place.made_by = found->second.made_by;
  place.made_at = found->second.made_at;
  return place;
}

void Waits::Enter(int rank, const Event& event) {
  Thread& thread = RankOf(rank).threads[event.thread];
  const std::vector<Event> parts = std::exchange(thread.parts, {});
  thread.event = event;
  thread.position.reset();
  thread.call = std::make_shared<NeedyCall>();
  thread.call->rank = rank;
  thread.call->past = {PlaceOf(rank, event), event.thread, event.peer, event.tag, event.ticks};
  if (broken_ && MayWait(FactsOf(event.call).call_class)) {
    thread.call->late = true;
    thread.call->unknown = 1;
    ++totals_[Index(rank)].uncounted;
  }
  Follow(rank, thread, parts);
  if (event.call == Call::kRequest_free || event.call == Call::kCancel) {
    for (const Event& part : parts) Release(rank, part.request, event.call);
  }
}

void Waits::Follow(int rank, Thread& thread, const std::vector<Event>& parts) {
  const Event& event = thread.event;
  Rank& mine = RankOf(rank);
  switch (FactsOf(event.call).call_class) {
    case Class::kSend: {
      const std::shared_ptr<Link> link = Send(rank, event);
      if ((event.flags & events::kBuffered) == 0) Await(thread.call, link);
      break;
    }
    case Class::kExchange:
      if (!parts.empty()) Await(thread.call, Send(rank, parts.front()));
      break;
    case Class::kPostSend:
      mine.requests[event.request] = {event, Send(rank, event), true};
      break;
    case Class::kPostExchange:
      for (const Event& part : parts) mine.requests[part.request] = {part, Send(rank, part), true};
      [[fallthrough]];
    case Class::kPostReceive:
      mine.requests[event.request] = {event, std::make_shared<Link>(), true};
      break;
    case Class::kPrepare:
      mine.requests[event.request] = {event, nullptr, false};
      break;
    case Class::kStart:
      for (const Event& part : parts) Start(rank, part.request, event.ticks);
      break;
    case Class::kCollective:
    case Class::kFinalize:
      EnterCollective(rank, event, &thread, nullptr);
      break;
    case Class::kPostCollective: {
      const auto link = std::make_shared<Link>();
      mine.requests[event.request] = {event, link, true};
      EnterCollective(rank, event, nullptr, link);
      break;
    }
    default:
      break;
  }
}

void Waits::Start(int rank, std::uint32_t number, std::uint64_t ticks) {
  const auto found = RankOf(rank).requests.find(number);
  if (found == RankOf(rank).requests.end()) return;
  Request& request = found->second;
  request.active = true;
  request.event.ticks = ticks;
  const bool receives = (request.event.flags & events::kReceiving) != 0;
  request.link = receives ? std::make_shared<Link>() : Send(rank, request.event);
}

// A freed request goes on without the program; a cancelled send will have no receive.
void Waits::Release(int rank, std::uint32_t number, Call call) {
  Rank& mine = RankOf(rank);
  const auto found = mine.requests.find(number);
  if (found == mine.requests.end()) return;
  const Request request = found->second;
  if (call == Call::kRequest_free) {
    mine.requests.erase(found);
    const bool receives = (request.event.flags & events::kReceiving) != 0;
    if (receives && request.active) {
      Receive(rank, request.event, request.event.peer, request.event.tag, request.link);
    }
    return;
  }
  for (auto& [key, channel] : channels_) {
    const auto removed =
        std::erase_if(channel.sends, [&](const Half& half) { return half.link == request.link; });
    CountOpen(-static_cast<int>(removed));
  }
}

void Waits::Done(int rank, const Event& event) {
  Rank& mine = RankOf(rank);
  const Thread& thread = mine.threads[event.thread];
  if (!thread.call) return;
  const bool tests = FactsOf(thread.event.call).call_class == Class::kTest;
  const std::shared_ptr<NeedyCall> waits = tests ? nullptr : thread.call;
  if (event.request != 0) return Over(rank, event, waits);
  if ((event.flags & (events::kNoMessage | events::kCancelled)) != 0) return;
  const auto link = std::make_shared<Link>();
  Receive(rank, thread.event, event.peer, event.tag, link);
  Await(waits, link);
}

// A request is over, in a call that waited for it; null: in a Test.
void Waits::Over(int rank, const Event& event, const std::shared_ptr<NeedyCall>& waits) {
  Rank& mine = RankOf(rank);
  const auto found = mine.requests.find(event.request);
  if (found == mine.requests.end()) return;
  Request& request = found->second;
  const bool known = (event.flags & events::kNoMessage) == 0;
  const bool goes = request.active && (event.flags & events::kCancelled) == 0;
  if (goes && (request.event.flags & events::kReceiving) != 0) {
    Receive(rank, request.event, known ? event.peer : request.event.peer,
            known ? event.tag : request.event.tag, request.link);
  }
  if (goes && (request.event.flags & events::kBuffered) == 0) Await(waits, request.link);
  request.active = false;
  request.link.reset();
  if ((request.event.flags & events::kPersistent) == 0) mine.requests.erase(found);
}

void Waits::Leave(int rank, const Event& event) {
  RankTotals& totals = totals_[Index(rank)];
  Thread& thread = RankOf(rank).threads[event.thread];
  const std::shared_ptr<NeedyCall> call = std::exchange(thread.call, nullptr);
  if (!call) return;
  call->past.left = event.ticks;
  ++totals.calls;
  ++totals.places[call->past.place].calls;
  totals.newest.push_back(call);
  if (totals.newest.size() > traced_) totals.newest.pop_front();
  if (call->unknown > 0 && !call->late) {
    call->late = true;
    ++totals.uncounted;
  }
  LeaveCollective(thread);
  Settle(*call);
}

void Waits::Made(int rank, const Event& event) {
  if (event.comm <= events::kFreedComm) return;
  Communicator& comm = communicators_[event.comm];
  if (comm.size == 0) {
    comm.size = static_cast<int>(event.count);
    comm.inter = (event.flags & events::kIntercomm) != 0;
    comm.called.assign(Index(std::max(comm.size, 0)), 0);
  }
  if (event.peer < 0 || event.peer >= comm.size) return;
  const std::uint64_t at = OfGroup(event.call) ? event.comm - events::kWorldGroups : event.site;
  RankOf(rank).in[event.comm] = {event.peer, event.call, at};
  if (event.request != 0) RankOf(rank).objects[event.request] = event.comm;
}

// A communicator that all members freed is forgotten: a program may make many.
void Waits::Freed(int rank, const Event& event) {
  auto& objects = RankOf(rank).objects;
  const auto object = objects.find(event.request);
  if (object == objects.end()) return;
  const std::uint64_t name = object->second;
  objects.erase(object);
  const auto found = communicators_.find(name);
  if (found == communicators_.end() || ++found->second.freed < found->second.size) return;
  if (!found->second.positions.empty()) return;
  communicators_.erase(found);
  for (Rank& each : ranks_) each.in.erase(name);
}

// Null: its receive can't be known.
std::shared_ptr<Waits::Link> Waits::Send(int rank, const Event& event) {
  const auto& in = RankOf(rank).in;
  const auto me = in.find(event.comm);
  if (me == in.end() || !Known(event.comm) || event.peer < 0) return nullptr;
  auto link = std::make_shared<Link>();
  Meet({event.comm, me->second.me, event.peer, event.tag}, {{event.ticks, rank}, link}, true);
  return link;
}

void Waits::Receive(int rank, const Event& event, int source, int tag, std::shared_ptr<Link> link) {
  const auto& in = RankOf(rank).in;
  const auto me = in.find(event.comm);
  if (me == in.end() || !Known(event.comm) || source < 0 || tag < 0) {
    if (link) link->partner = Moment{0, rank};  // nobody
    return;
  }
  Meet({event.comm, source, me->second.me, tag}, {{event.ticks, rank}, std::move(link)}, false);
}

void Waits::Meet(const ChannelKey& key, Half half, bool sends) {
  Channel& channel = channels_[key];
  std::deque<Half>& others = sends ? channel.receives : channel.sends;
  if (others.empty()) {
    (sends ? channel.sends : channel.receives).push_back(std::move(half));
    return CountOpen(1);
  }
  const Half other = std::move(others.front());
  others.pop_front();
  const bool idle = channel.sends.empty() && channel.receives.empty();
  if (idle && channels_.size() > kMostIdle) channels_.erase(key);
  CountOpen(-1);
  if (half.link) Resolve(*half.link, other.at);
  if (other.link) Resolve(*other.link, half.at);
}

void Waits::Await(const std::shared_ptr<NeedyCall>& call, const std::shared_ptr<Link>& link) {
  if (!call || !link) return;
  if (link->partner) {
    call->needs.push_back(*link->partner);
    return;
  }
  ++call->unknown;
  link->waiter = call;
}

void Waits::Resolve(Link& link, Moment partner) {
  link.partner = partner;
  const std::shared_ptr<NeedyCall> waiter = std::exchange(link.waiter, nullptr);
  if (!waiter) return;
  waiter->needs.push_back(partner);
  --waiter->unknown;
  Settle(*waiter);
}

void Waits::Settle(NeedyCall& call) {
  PastCall& past = call.past;
  if (past.left == 0 || call.unknown > 0) return;
  RankTotals& totals = totals_[Index(call.rank)];
  if (call.late) --totals.uncounted;
  call.late = false;
  Moment last{past.entered, -1};
  for (const Moment& need : call.needs) {
    if (need.ticks > last.ticks && need.ticks <= past.left) last = need;
  }
  call.needs = {};
  if (last.rank < 0 || last.rank == call.rank) return;
  past.waited = last.ticks - past.entered;
  past.waited_for = last.rank;
  Spent& spent = totals.places[past.place];
  spent.waited += past.waited;
  spent.longest = std::max(spent.longest, past.waited);
  Blame& blame = spent.blamed[last.rank];
  ++blame.times;
  blame.ticks += past.waited;
}

}  // namespace lockstep::watch::report
