// Which receive took which message, and whether the two fit. Between two ranks, each receive takes
// the first message that fits and that no receive before it takes. The events of either rank may be
// read first.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {
namespace {

bool FitsTag(const Event& receive, const Event& sent) {
  return receive.tag == events::kAnyTag || receive.tag == sent.tag;
}

}  // namespace

// Receives of `to` before the one of this `order` that still wait for a message of `from`, less
// those that the messages which are there will serve. Takes these messages out of `left`.
std::vector<const Event*> Judge::StillWaiting(const ChannelKey& key, std::uint64_t order,
                                              std::vector<const Message*>* left) const {
  const auto& [comm, from, to] = key;
  std::vector<const Event*> waiting;
  const int world = history_.WorldRank(comm, to);
  if (world < 0) return waiting;
  const Rank& receiver = history_.ranks[Index(world)];
  for (const auto& [earlier, number] : receiver.posted) {
    if (earlier >= order) break;
    const Event& receive = receiver.requests.at(number).event;
    // Of one that takes any source nobody knows yet what it took.
    if (receive.comm != comm || receive.peer != from) continue;
    const auto served = std::find_if(left->begin(), left->end(), [&](const Message* each) {
      return FitsTag(receive, each->sent);
    });
    if (served == left->end()) {
      waiting.push_back(&receive);
    } else {
      left->erase(served);
    }
  }
  return waiting;
}

std::uint64_t Judge::Send(int rank, const Event& event) {
  const int me = history_.RankIn(rank, event.comm);
  if (me < 0 || event.peer < 0 || history_.communicators[event.comm].inter) return 0;
  const ChannelKey key = {event.comm, me, event.peer};
  Channel& channel = history_.channels[key];
  Message message{++history_.last_message, event, rank,
                  history_.communicators[event.comm].passed[Index(me)]};
  auto taken = channel.taken.end();
  for (auto each = channel.taken.begin(); each != channel.taken.end(); ++each) {
    if (each->tag != event.tag) continue;
    if (taken == channel.taken.end() || each->order < taken->order) taken = each;
  }
  if (taken != channel.taken.end()) {
    std::vector<const Message*> left;
    for (const Message& each : channel.sent) left.push_back(&each);
    const std::vector<const Event*> waiting = StillWaiting(key, taken->order, &left);
    const bool other = std::any_of(waiting.begin(), waiting.end(),
                                   [&](const Event* receive) { return FitsTag(*receive, event); });
    if (other) taken = channel.taken.end();
  }
  if (taken == channel.taken.end()) {
    channel.sent.push_back(message);
    return message.number;
  }
  Pair(message, *taken);
  channel.taken.erase(taken);
  return 0;
}

void Judge::Received(int rank, const Event& receive, std::uint64_t order, int source, int tag,
                     bool blocked) {
  const int me = history_.RankIn(rank, receive.comm);
  if (me < 0 || history_.communicators[receive.comm].inter) return;
  if (receive.peer == events::kAnySource) CheckRace(rank, receive, source);
  const Taken taken{
      tag, receive, rank, blocked, history_.communicators[receive.comm].called[Index(me)], order};
  const ChannelKey key = {receive.comm, source, me};
  Channel& channel = history_.channels[key];
  const auto& posted = history_.ranks[Index(rank)].posted;
  std::uint64_t number = 0;
  if (posted.empty() || posted.begin()->first >= order) {  // as a rule
    const auto sent = std::find_if(channel.sent.begin(), channel.sent.end(),
                                   [&](const Message& each) { return each.sent.tag == tag; });
    if (sent != channel.sent.end()) number = sent->number;
  } else {
    std::vector<const Message*> left;
    for (const Message& each : channel.sent) left.push_back(&each);
    StillWaiting(key, order, &left);
    const auto sent = std::find_if(left.begin(), left.end(),
                                   [&](const Message* each) { return each->sent.tag == tag; });
    if (sent != left.end()) number = (*sent)->number;
  }
  const auto sent = std::find_if(channel.sent.begin(), channel.sent.end(),
                                 [&](const Message& each) { return each.number == number; });
  if (sent == channel.sent.end()) {
    channel.taken.push_back(taken);
    return;
  }
  Pair(*sent, taken);
  channel.sent.erase(sent);
}

void Judge::Pair(const Message& message, const Taken& taken) {
  const Event& sent = message.sent;
  const Event& receive = taken.receive;
  // A collective may wait for all members: then this message would never have been sent. Where
  // members called different things, nobody counts them any more. Of a group, other threads make
  // the collectives: their order among messages says nothing.
  const bool counted = !history_.communicators[sent.comm].broken && !events::OfGroup(sent.call);
  if (counted && taken.blocked && message.passed > taken.called) {
    Add(Cause::kUnsafeOrder, {message.source, taken.rank},
        fmt::format("rank {} sends after a collective at {}; rank {} waits for it before that "
                    "collective at {}",
                    message.source, At(message.source, sent.site), taken.rank,
                    At(taken.rank, receive.site)),
        receive.site, false);
  }
  if (sent.type < 256 || receive.type < 256 || sent.count == 0) return;
  if (sent.type != receive.type) {
    Add(Cause::kDatatypeMismatch, {message.source, taken.rank},
        fmt::format("rank {} sends another datatype at {} than rank {} receives at {}",
                    message.source, At(message.source, sent.site), taken.rank,
                    At(taken.rank, receive.site)),
        receive.site);
  } else if (receive.count >= 0 && sent.count > receive.count) {
    Add(Cause::kTruncation, {message.source, taken.rank},
        fmt::format("rank {} sends {} elements at {}; rank {} has room for {} at {}",
                    message.source, sent.count, At(message.source, sent.site), taken.rank,
                    receive.count, At(taken.rank, receive.site)),
        receive.site);
  }
}

// Two sources at one wildcard: which comes first is chance. Many right programs are made so.
void Judge::CheckRace(int rank, const Event& receive, int source) {
  if (!options_.races) return;
  const auto [first, fresh] = first_source_.insert({{rank, receive.site}, source});
  if (fresh || first->second == source) return;
  Add(Cause::kMessageRace, {rank},
      fmt::format("messages of ranks {} and {} race for the MPI_ANY_SOURCE of rank {} at {}",
                  history_.WorldRank(receive.comm, first->second),
                  history_.WorldRank(receive.comm, source), rank, At(rank, receive.site)),
      receive.site, false);
}

}  // namespace lockstep::watch::judge
