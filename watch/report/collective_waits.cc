// Collectives: the place of each member's call in the communicator's order, who came last there,
// and which entries each member needed.
#include <algorithm>
#include <limits>
#include <utility>

#include "watch/report/waits.h"

namespace lockstep::watch::report {

using events::Class;
using events::FactsOf;
using events::Sync;

void Waits::EnterCollective(int rank, const Event& event, Thread* thread,
                            std::shared_ptr<Link> link) {
  const bool ends = FactsOf(event.call).call_class == Class::kFinalize;
  const std::uint64_t name = ends ? events::kWorldComm : event.comm;
  const auto me = RankOf(rank).in.find(name);
  Communicator* const comm = Known(name);
  if (me == RankOf(rank).in.end() || comm == nullptr) return;
  const std::uint64_t order = events::OrderOf(event);
  const std::uint64_t called = comm->called[Index(me->second.me)]++;
  const std::uint64_t place = ends         ? std::numeric_limits<std::uint64_t>::max()
                              : order != 0 ? order
                                           : called;
  const auto [found, fresh] = comm->positions.try_emplace(place);
  Position& position = found->second;
  if (fresh) {
    position.first = event;
    position.members.resize(Index(comm->size));
  }
  Member& member = position.members[Index(me->second.me)];
  if (member.rank >= 0) return;  // it was here before: the order is not what it seems
  ++position.entered;
  if (thread != nullptr) {
    ++thread->call->unknown;
    thread->position = {name, place};
  } else {
    ++position.left;
  }
  member = {event.ticks, rank, PlaceOf(rank, event), thread ? thread->call : nullptr,
            std::move(link)};
  if (fresh) CountOpen(1);
  CompleteIfWhole(name, place);
}

void Waits::LeaveCollective(const Thread& thread) {
  if (!thread.position) return;
  Communicator* const comm = Known(thread.position->first);
  if (comm == nullptr) return;
  const auto found = comm->positions.find(thread.position->second);
  if (found == comm->positions.end()) return;
  ++found->second.left;
  CompleteIfWhole(thread.position->first, thread.position->second);
}

void Waits::CompleteIfWhole(std::uint64_t name, std::uint64_t place) {
  Communicator* const comm = Known(name);
  if (comm == nullptr) return;
  const auto found = comm->positions.find(place);
  if (found == comm->positions.end()) return;
  if (found->second.entered < comm->size || found->second.left < comm->size) return;
  const Position position = std::move(found->second);
  comm->positions.erase(found);
  CountOpen(-1);
  Complete(position);
}

namespace {

// Which members' entries the member needs: those from `first` on, up to `end`.
struct Needed {
  std::size_t first = 0;
  std::size_t end = 0;
};

Needed NeededBy(std::size_t me, std::size_t size, Sync sync, std::int32_t root) {
  const bool known = root >= 0 && static_cast<std::size_t>(root) < size;
  const std::size_t at = known ? static_cast<std::size_t>(root) : 0;
  switch (sync) {
    case Sync::kNone:
    case Sync::kLoose:
    case Sync::kAll:
      return {0, size};
    case Sync::kRoot:
      return known && me != at ? Needed{at, at + 1} : Needed{};
    case Sync::kNeighbors:  // who they are is not known here
      return {};
    case Sync::kAtRoot:
      return me == at ? Needed{0, size} : Needed{};
    case Sync::kLower:
      return {0, me};
  }
  return {};
}

}  // namespace

void Waits::Complete(const Position& position) {
  const std::vector<Member>& members = position.members;
  const auto earlier = [](const Member& a, const Member& b) { return a.entered < b.entered; };
  const auto last = std::max_element(members.begin(), members.end(), earlier);
  if (members.size() > 1) ++totals_[Index(last->rank)].places[last->place].came_last;
  const Sync sync = FactsOf(position.first.call).sync;
  for (std::size_t me = 0; me < members.size(); ++me) {
    const Member& member = members[me];
    const auto [first, end] = NeededBy(me, members.size(), sync, position.first.peer);
    Moment needed{member.entered, member.rank};
    const std::uint64_t left = member.call ? member.call->past.left : 0;
    const bool all = first == 0 && end == members.size();
    if (all && (left == 0 || last->entered <= left)) {
      needed = {last->entered, last->rank};
    } else {
      for (std::size_t other = first; other < end; ++other) {
        const Member& its = members[other];
        const bool seen = left == 0 || its.entered <= left;
        if (seen && its.entered > needed.ticks) needed = {its.entered, its.rank};
      }
    }
    if (member.link) Resolve(*member.link, needed);
    if (!member.call) continue;
    member.call->needs.push_back(needed);
    --member.call->unknown;
    Settle(*member.call);
  }
}

}  // namespace lockstep::watch::report
