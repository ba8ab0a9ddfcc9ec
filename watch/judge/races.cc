// Messages that race for a receive of any source. Two sources at one place of the program do so by
// their number. A message that a later receive took races, too, where its send cannot have known
// what the first receive took. Nobody knows that but the receiver, once it is told, and the sender,
// once its call has returned. Here an epoch is as many blocking collectives of the world as a rank
// has entered. A sender knows nothing of what others do in its epoch until it hears from them.
#include <fmt/format.h>

#include <algorithm>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;

namespace {

constexpr std::size_t kMostMatched = 64;  // of a rank
constexpr std::size_t kMostOpenRaces = 1024;

// Nobody leaves it before all have entered, however the library does it.
bool MeetsAll(const Event& event) {
  const bool all_give = event.call == Call::kAllreduce || event.call == Call::kAllgather ||
                        event.call == Call::kAlltoall;
  return event.call == Call::kBarrier || (all_give && event.count > 0);
}

// What it returns tells nothing of what other ranks do.
bool TellsNothing(const Event& event) {
  const Class kind = FactsOf(event.call).call_class;
  return kind == Class::kPostSend || kind == Class::kPostReceive || kind == Class::kPrepare ||
         kind == Class::kPostExchange ||
         (event.call >= Call::kComm_group && event.call <= Call::kOp_free) ||
         event.call == Call::kInit || event.call == Call::kInit_thread;
}

// `other` is of a later receive, and might have come to the receive of any source before its own
// message.
bool MayRace(const Matched& any, const Matched& other) {
  const Event& receive = any.taken.receive;
  const bool fits = receive.peer == events::kAnySource &&
                    receive.comm == other.taken.receive.comm &&
                    (receive.tag == events::kAnyTag || receive.tag == other.message.sent.tag);
  const Knowledge& sent = other.message.known;
  return fits && any.taken.order < other.taken.order &&
         any.message.source != other.message.source && sent.deaf &&
         sent.epoch <= any.message.known.epoch;
}

}  // namespace

// Calls that are not followed may use it.
bool Judge::IsUnseenWay(const Event& made) {
  return made.object == events::Object::kWindow || made.object == events::Object::kFile ||
         (made.flags & events::kIntercomm) != 0 || OfGroup(made.call) ||
         (made.call >= Call::kCart_create && made.call <= Call::kIntercomm_merge);
}

void Judge::NoteHeard(int rank, const Event& event) {
  Rank& mine = history_.ranks[Index(rank)];
  const bool of_all =
      event.comm == events::kWorldComm && FactsOf(event.call).call_class == Class::kCollective;
  if (of_all) {
    mine.met_all = MeetsAll(event);
  } else if (!TellsNothing(event)) {
    mine.heard = EpochOf(rank);
    mine.first_heard = std::min(mine.first_heard, mine.heard);
  }
}

std::uint64_t Judge::EpochOf(int rank) const {
  const int me = history_.RankIn(rank, events::kWorldComm);
  return me < 0 ? 0 : history_.communicators.at(events::kWorldComm).passed[Index(me)];
}

Knowledge Judge::KnownBy(int rank) const {
  const Rank& mine = history_.ranks[Index(rank)];
  const std::uint64_t epoch = EpochOf(rank);
  const bool counted = history_.RankIn(rank, events::kWorldComm) >= 0;
  const bool alone = mine.OneThread() && !mine.in_group;
  return {epoch, counted && alone && mine.heard != epoch, mine.met_all};
}

// Two sources at one wildcard: which comes first is chance. Many right programs are made so.
void Judge::CheckRace(int rank, const Event& receive, int source) {
  const auto [first, fresh] = first_source_.insert({{rank, receive.site}, source});
  if (fresh || first->second == source) return;
  const std::pair<int, int> sources = {first->second, source};
  if (!TellSources(rank, receive, sources))
    unnamed_races_[{rank, receive.site}] = {receive, sources};
}

// False: one of them was not read as far as this communicator.
bool Judge::TellSources(int rank, const Event& receive, const std::pair<int, int>& sources) {
  const int one = history_.WorldRank(receive.comm, sources.first);
  const int other = history_.WorldRank(receive.comm, sources.second);
  if (one < 0 || other < 0) return false;
  TellRace(rank, receive, one, other);
  return true;
}

void Judge::TellRace(int rank, const Event& receive, int one, int other) {
  Add(Cause::kMessageRace, {rank},
      fmt::format("messages of ranks {} and {} race for the MPI_ANY_SOURCE of rank {} at {}", one,
                  other, rank, At(rank, receive.site)),
      receive.site, false);
}

void Judge::NoteMatched(const Message& message, const Taken& taken) {
  std::deque<Matched>& matched = matched_[taken.rank];
  const Matched fresh{message, taken};
  const auto weigh = [&](const Matched& any, const Matched& other) {
    if (MayRace(any, other) && !DecideRace(any, other) && open_races_.size() < kMostOpenRaces) {
      open_races_.emplace_back(any, other);
    }
  };
  for (const Matched& each : matched) {
    weigh(each, fresh);
    weigh(fresh, each);
  }
  matched.push_back(fresh);
  if (matched.size() > kMostMatched) matched.pop_front();
}

// False: not yet, because not all ranks were read as far as that. Where the sender's last
// collective lets ranks go early, it may have carried what another rank heard before it.
bool Judge::DecideRace(const Matched& any, const Matched& other) {
  const Knowledge& sent = other.message.known;
  const Communicator& world = history_.communicators.at(events::kWorldComm);
  const auto heard = [&](const Rank& each) { return each.first_heard < sent.epoch; };
  if (world.broken || unseen_ways_) return true;
  if (!sent.met_all) {
    if (std::ranges::any_of(history_.ranks, heard)) return true;
    if (std::ranges::any_of(world.called, [&](auto each) { return each < sent.epoch; })) {
      return false;
    }
  }
  TellRace(any.taken.rank, any.taken.receive, any.message.source, other.message.source);
  return true;
}

}  // namespace lockstep::watch::judge
