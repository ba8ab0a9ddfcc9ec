// Runs a random program. Each step of the schedule lets one rank enter or leave one call, or lets
// one message arrive. A rank that polls is in no call until its test finds something.
#include "watch/fuzz/library.h"

#include <algorithm>

namespace lockstep::watch::fuzz {

using events::Class;
using events::FactsOf;
using events::Phase;
using events::Sync;

bool IsCollective(Call call) { return FactsOf(call).sync != Sync::kNone; }

std::uint8_t FlagsOf(Call call) {
  switch (call) {
    case Call::kSsend:
    case Call::kIssend:
      return events::kSynchronous;
    case Call::kBsend:
      return events::kBuffered;
    case Call::kRecv:
    case Call::kIrecv:
    case Call::kProbe:
    case Call::kSendrecv:
      return events::kReceiving;
    default:
      return 0;
  }
}

namespace {

void Join(const std::vector<int>& from, std::vector<int>& into) {
  into.resize(std::max(into.size(), from.size()));
  for (std::size_t rank = 0; rank < from.size(); ++rank) {
    into[rank] = std::max(into[rank], from[rank]);
  }
}

}  // namespace

std::int64_t RoomOf(const Action& action) {
  return action.call == Call::kSendrecv ? std::max<std::int64_t>(4, action.count) : action.count;
}

std::uint64_t NameOfComm(std::size_t comm) {
  return comm == 0 ? events::kWorldComm : 0x1000 + comm;
}

Library::Library(const Program& program)
    : program_(program), random_(Mix64(program.seed ^ 0x5ced)), ranks_(Index(program.ranks)) {
  for (const auto& members : program.comms) {
    called_.emplace_back(members.size());
    places_.emplace_back();
  }
  for (int rank = 0; rank < program.ranks; ++rank) Begin(rank);
}

void Library::Begin(int rank) {
  RankState& mine = ranks_[Index(rank)];
  mine.clock.resize(ranks_.size());
  mine.actions = ActionsOf(program_, rank);
  for (std::size_t comm = 0; comm < program_.comms.size(); ++comm) {
    const int me = MemberOf(program_, comm, rank);
    if (me < 0) continue;
    Event event;
    event.phase = Phase::kMade;
    event.call = Call::kInit;
    event.thread = 1;
    event.comm = NameOfComm(comm);
    event.peer = me;
    event.count = static_cast<std::int64_t>(program_.comms[comm].size());
    Write(rank, event);
  }
}

bool Library::Advance() {
  std::vector<int> can;  // a rank; program_.ranks + a channel
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const State state = ranks_[Index(rank)].state;
    const bool waits = state == State::kInCall || state == State::kPolls;
    if (state == State::kReady || (waits && MayReturn(rank))) can.push_back(rank);
  }
  for (std::size_t channel = 0; channel < channels_.size(); ++channel) {
    if (!channels_[channel].empty()) can.push_back(program_.ranks + static_cast<int>(channel));
  }
  if (can.empty()) return false;
  const int chosen = can[random_.Below(can.size())];
  if (chosen >= program_.ranks) {
    Deliver(Index(chosen - program_.ranks));
  } else if (ranks_[Index(chosen)].state == State::kReady) {
    Enter(chosen);
  } else {
    Return(chosen);
  }
  return true;
}

void Library::Enter(int rank) {
  RankState& mine = ranks_[Index(rank)];
  const Action& action = mine.actions[mine.next];
  if (action.dies) {
    mine.state = State::kDead;
    return;
  }
  mine.current = {};
  ++mine.clock[Index(rank)];
  if (FactsOf(action.call).call_class == Class::kTest) {
    mine.state = State::kPolls;
    return;
  }
  ++mine.entered;
  mine.state = State::kInCall;
  WriteParts(rank, action);
  Write(rank, EventOf(Phase::kEnter, action));
  Start(rank, action, mine.current);
  if (action.request != 0) mine.requests[action.request] = mine.current;
}

void Library::Start(int rank, const Action& action, RequestState& request) {
  request.action = action;
  if (IsCollective(action.call)) {
    request.position = EnterCollective(rank, action);
    return;
  }
  switch (FactsOf(action.call).call_class) {
    case Class::kSend:
    case Class::kPostSend:
      request.message = SendMessage(rank, action);
      break;
    case Class::kReceive:
    case Class::kPostReceive:
      request.receive = PostReceive(rank, action);
      break;
    case Class::kExchange:
      request.message = SendMessage(rank, action);
      request.receive = PostReceive(rank, action);
      break;
    default:
      break;
  }
}

int Library::SendMessage(int rank, const Action& action) {
  const Call call = action.call;
  const auto number = static_cast<int>(sent_.size());
  const bool synchronous = (FlagsOf(call) & events::kSynchronous) != 0;
  const bool buffered = call == Call::kBsend ||
                        (!synchronous && static_cast<int>(random_.Below(4)) < program_.buffered);
  sent_.push_back({rank, action.peer, action, buffered, -1, ranks_[Index(rank)].clock});
  const auto [found, fresh] =
      channel_of_.try_emplace({action.comm, rank, action.peer}, channels_.size());
  if (fresh) channels_.emplace_back();
  channels_[found->second].push_back(number);
  return number;
}

bool Library::Fits(const Posted& receive, const Sent& message) const {
  const Action& wanted = receive.action;
  return receive.rank == message.to && wanted.comm == message.action.comm &&
         (wanted.peer == kAny || wanted.peer == message.source) &&
         (wanted.tag == kAny || wanted.tag == message.action.tag);
}

void Library::Match(int receive, int message) {
  posted_[Index(receive)].message = message;
  sent_[Index(message)].receive = receive;
}

int Library::PostReceive(int rank, const Action& action) {
  const auto number = static_cast<int>(posted_.size());
  posted_.push_back({rank, action, -1, false, ranks_[Index(rank)].clock});
  RankState& mine = ranks_[Index(rank)];
  const auto message = std::ranges::find_if(
      mine.arrived, [&](int each) { return Fits(posted_.back(), sent_[Index(each)]); });
  if (message == mine.arrived.end()) {
    mine.posted.push_back(number);
  } else {
    Match(number, *message);
    mine.arrived.erase(message);
  }
  return number;
}

void Library::Deliver(std::size_t channel) {
  const int message = channels_[channel].front();
  channels_[channel].erase(channels_[channel].begin());
  RankState& theirs = ranks_[Index(sent_[Index(message)].to)];
  const auto receive = std::ranges::find_if(
      theirs.posted, [&](int each) { return Fits(posted_[Index(each)], sent_[Index(message)]); });
  if (receive == theirs.posted.end()) {
    theirs.arrived.push_back(message);
  } else {
    Match(*receive, message);
    theirs.posted.erase(receive);
  }
}

std::size_t Library::EnterCollective(int rank, const Action& action) {
  const auto me = Index(MemberOf(program_, action.comm, rank));
  const std::size_t place = called_[action.comm][me]++;
  std::vector<Place>& places = places_[action.comm];
  if (places.size() <= place) places.resize(place + 1);
  Place& there = places[place];
  if (there.came.empty()) {
    there.came.resize(program_.comms[action.comm].size());
    there.first = action;
  }
  there.came[me] = true;
  Join(ranks_[Index(rank)].clock, there.clock);
  const Sync sync = FactsOf(action.call).sync;
  const bool rooted = sync == Sync::kRoot || sync == Sync::kAtRoot;
  there.broken = there.broken || there.first.call != action.call ||
                 (rooted && there.first.root != action.root);
  return place + 1;
}

bool Library::CollectiveIsOver(int rank, const RequestState& request) const {
  const Action& action = request.action;
  const Place& there = places_[action.comm][request.position - 1];
  const auto me = Index(MemberOf(program_, action.comm, rank));
  const auto all = std::ranges::all_of(there.came, [](bool each) { return each; });
  if (there.broken) return false;
  switch (program_.lax ? FactsOf(action.call).sync : Sync::kAll) {
    case Sync::kRoot:
      return there.came[Index(action.root)];
    case Sync::kAtRoot:
      return Index(action.root) != me || all;
    case Sync::kLower:
      return std::all_of(there.came.begin(), there.came.begin() + static_cast<std::ptrdiff_t>(me),
                         [](bool each) { return each; });
    default:
      return all;
  }
}

bool Library::IsOver(int rank, const RequestState& request) const {
  if (request.position != 0) return CollectiveIsOver(rank, request);
  if (request.receive >= 0 && posted_[Index(request.receive)].message < 0) return false;
  if (request.message < 0) return true;
  const Sent& message = sent_[Index(request.message)];
  return message.buffered || message.receive >= 0;
}

bool Library::ProbeFinds(int rank) const {
  const RankState& mine = ranks_[Index(rank)];
  const Posted probe = {rank, mine.actions[mine.next], -1, false, {}};
  return std::ranges::any_of(mine.arrived,
                             [&](int each) { return Fits(probe, sent_[Index(each)]); });
}

bool Library::MayReturn(int rank) const {
  const RankState& mine = ranks_[Index(rank)];
  const Action& action = mine.actions[mine.next];
  if (action.request != 0) return true;
  if (action.call == Call::kProbe) return ProbeFinds(rank);
  if (action.requests.empty()) return IsOver(rank, mine.current);
  const auto over = [&](std::uint32_t request) { return IsOver(rank, mine.requests.at(request)); };
  const bool any = FactsOf(action.call).call_class == Class::kWaitAny;
  return any ? std::ranges::any_of(action.requests, over)
             : std::ranges::all_of(action.requests, over);
}

// What is over tells its rank whatever the others knew that took part.
void Library::Learn(int rank, const RequestState& over) {
  std::vector<int>& mine = ranks_[Index(rank)].clock;
  const int now = ++mine[Index(rank)];
  if (over.position != 0) Join(places_[over.action.comm][over.position - 1].clock, mine);
  if (over.receive >= 0) {
    Posted& receive = posted_[Index(over.receive)];
    receive.told = now;
    Join(sent_[Index(receive.message)].clock, mine);
  }
  if (over.message >= 0) {
    Sent& message = sent_[Index(over.message)];
    message.over = now;
    if (!message.buffered) Join(posted_[Index(message.receive)].clock, mine);
  }
}

bool Library::Raced(const Posted& receive) const {
  if (receive.action.peer != kAny || !receive.known) return false;
  const Sent& taken = sent_[Index(receive.message)];
  return std::ranges::any_of(sent_, [&](const Sent& other) {
    const bool later = other.receive >= 0 && &posted_[Index(other.receive)] > &receive;
    return later && other.source != taken.source && Fits(receive, other) &&
           other.clock[Index(receive.rank)] < receive.told &&
           other.clock[Index(taken.source)] < taken.over;
  });
}

void Library::EndRequest(int rank, std::uint32_t number) {
  RankState& mine = ranks_[Index(rank)];
  const auto found = mine.requests.find(number);
  WriteDone(rank, mine.actions[mine.next], number, found->second.receive);
  Learn(rank, found->second);
  mine.requests.erase(found);
}

// Mostly the newest event becomes one that says so. In several threads, say, it does not.
void Library::WriteLeave(int rank, const Action& action) {
  std::vector<Event>& events = ranks_[Index(rank)].events;
  const Phase left = events::LeftAfter(events.back().phase);
  if (left == Phase::kNothing || Mix64(program_.seed + events.size()) % 4 == 0) {
    Event leave = EventOf(Phase::kLeave, action);
    leave.peer = 0;
    Write(rank, leave);
  } else {
    events.back().phase = left;
  }
}

void Library::Return(int rank) {
  RankState& mine = ranks_[Index(rank)];
  Action& action = mine.actions[mine.next];
  if (mine.state == State::kPolls) {
    ++mine.entered;
    Write(rank, EventOf(Phase::kEnter, action));
  }
  if (action.requests.empty()) {
    const bool receives = FactsOf(action.call).call_class == Class::kReceive ||
                          FactsOf(action.call).call_class == Class::kExchange;
    if (receives) WriteDone(rank, action, 0, mine.current.receive);
    if (action.request == 0) Learn(rank, mine.current);
  }
  std::vector<std::uint32_t> over, left;
  for (const std::uint32_t request : action.requests) {
    (IsOver(rank, mine.requests.at(request)) ? over : left).push_back(request);
  }
  if (action.call == Call::kWaitany) {
    std::swap(over[0], over[random_.Below(over.size())]);
    left.insert(left.end(), over.begin() + 1, over.end());
    over.resize(1);
  }
  for (const std::uint32_t request : over) EndRequest(rank, request);
  WriteLeave(rank, action);
  mine.state = action.call == Call::kFinalize ? State::kFinished : State::kReady;
  if (left.empty()) {
    ++mine.next;
  } else {
    action.requests = std::move(left);  // and again
  }
}

}  // namespace lockstep::watch::fuzz
