// Collectives by position: the n-th call of each member of a communicator belongs together. What
// the first member called is compared with what the others call.
#include <fmt/format.h>

#include <algorithm>

#include "watch/judge/arguments.h"
#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::Class;
using events::FactsOf;
using events::Sync;

namespace {

bool Known(std::uint32_t type) { return type >= 256; }

bool Rooted(Call call) {
  return FactsOf(call).sync == Sync::kRoot || FactsOf(call).sync == Sync::kAtRoot;
}

bool SameData(std::uint32_t type, std::int64_t count, std::uint32_t type2, std::int64_t count2) {
  if (!Known(type) || !Known(type2) || (count == 0 && count2 == 0)) return true;
  if (type != type2) return false;
  return count < 0 || count2 < 0 || count == count2;
}

// The low byte of an element's type is its size.
std::int64_t Bytes(const Event& event) { return event.count * (event.type & 255); }

}  // namespace

const Position* Communicator::FirstMissed(int member) const {
  for (std::size_t each = 0; each < positions.size(); ++each) {
    if (!Came(positions[each], static_cast<std::size_t>(member))) return &positions[each];
  }
  return nullptr;
}

namespace {

// What all members must agree on is the same in both, and so is what each of them gives.
bool Alike(const Event& a, const Event& b) {
  return a.call == b.call && a.flags == b.flags && a.peer == b.peer && a.tag == b.tag &&
         a.type == b.type && a.count == b.count && a.type2 == b.type2 && a.count2 == b.count2;
}

bool SendsWhatItReceives(const Event& event) {
  return event.type2 == events::kMixedType ||
         (event.type == event.type2 && event.count == event.count2);
}

bool IsOverCollective(const Event& event) {
  // What lies before this one belongs to it.
  const bool alone =
      event.call != Call::kIntercomm_create && FactsOf(event.call).sync != Sync::kNeighbors;
  return event.phase == events::Phase::kEnterLeft && !OfGroup(event.call) && alone &&
         FactsOf(event.call).call_class == Class::kCollective && SendsWhatItReceives(event);
}

}  // namespace

// The next collective of a member, `place`. False: nothing was done.
bool Judge::PassCollective(int rank, const Event& event, Communicator& comm, std::uint64_t place) {
  if (comm.size == 1) return IsRightCollective(event, 1);
  const std::size_t number = comm.positions.Before(place);
  if (number == comm.positions.size()) {
    if (!comm.ended.empty() || !IsRightCollective(event, comm.size)) return false;
    Position& there = comm.positions.Begin(place);
    there.first = event;
    there.first_rank = rank;
    there.entered = 1;
  } else {
    Position& there = comm.positions[number];
    if (there.place != place || !Alike(there.first, event)) return false;
    ++there.entered;
    if (there.entered == comm.size) comm.positions.Erase(place);
  }
  return true;
}

// The calls of a thread that makes them alone leave nothing behind but a place in their order.
std::size_t Judge::PassCollectives(int rank, std::span<const Event> some) {
  const Rank& mine = history_.ranks[Index(rank)];
  const auto& [name, known, me] = mine.newest;
  if (!known || me < 0 || known->inter || known->broken) return 0;
  if (mine.threads.size() != 1 || !mine.open.empty()) return 0;
  const std::uint16_t thread = mine.threads.begin()->first;
  std::uint64_t place = known->called[Index(me)];
  std::size_t passed = 0;
  for (const Event& event : some) {
    const bool over = event.comm == name && event.thread == thread && IsOverCollective(event);
    if (!over || !PassCollective(rank, event, *known, place)) break;
    ++place;
    ++passed;
  }
  if (passed > 0) known->called[Index(me)] = known->passed[Index(me)] = place;
  return passed;
}

std::uint64_t Judge::Behind(int rank, const events::Cycle& cycle) {
  std::uint64_t behind = 0;
  const std::span<const Event> calls = cycle.round();
  for (auto call = calls.begin(); call != calls.end(); ++call) {
    const auto same = [&](const Event& before) { return before.comm == call->comm; };
    if (std::any_of(calls.begin(), call, same)) continue;
    const auto& [name, comm, me] = history_.MembershipIn(rank, call->comm);
    if (!comm || me < 0 || comm->positions.empty()) continue;
    behind += comm->positions[comm->positions.size() - 1].place + 1 - comm->called[Index(me)];
  }
  return behind;
}

bool Judge::IsEven(int rank, const Event& call, const Event& elsewhere) {
  const Rank& mine = history_.ranks[Index(rank)];
  if (mine.threads.size() != 1 || mine.threads.begin()->first != call.thread) return false;
  if (!mine.open.empty() || !IsOverCollective(call)) return false;
  if (call.comm != elsewhere.comm || !Alike(call, elsewhere)) return false;
  const auto& [name, comm, me] = history_.MembershipIn(rank, call.comm);
  return comm && me >= 0 && comm->size == history_.size && !comm->inter && !comm->broken &&
         comm->positions.empty() && comm->ended.empty() && IsRightCollective(call, comm->size);
}

bool Judge::TakeCycles(std::span<const events::Cycle> cycles, std::uint64_t times) {
  if (options_.races || cycles.size() != history_.ranks.size()) return false;
  const events::Cycle& first = cycles.front();
  for (int rank = 0; rank < history_.size; ++rank) {
    const events::Cycle& cycle = cycles[Index(rank)];
    if (cycle.length != first.length) return false;
    for (std::size_t each = 0; each < cycle.length; ++each) {
      if (!IsEven(rank, cycle.calls[each], first.calls[each])) return false;
    }
  }
  for (int rank = 0; rank < history_.size; ++rank) {
    for (const Event& call : first.round()) {
      const auto& [name, comm, me] = history_.MembershipIn(rank, call.comm);
      comm->passed[Index(me)] = comm->called[Index(me)] += times;
    }
  }
  return true;
}

namespace {

// A mismatch leaves open who meets whom later, unless calls have numbers of their own or are
// counted.
bool HasOrder(const Communicator& comm, std::uint64_t order) {
  if (comm.inter) return false;
  return !comm.broken || comm.apart || (order != 0 && !comm.enqueued);
}

}  // namespace

Place Judge::EnterCollective(int rank, const Event& event) {
  const Membership& member = history_.MembershipIn(rank, event.comm);
  if (!member.comm || member.me < 0) return {};
  Communicator& comm = *member.comm;
  const int me = member.me;
  const std::uint64_t order = events::OrderOf(event);
  if (!HasOrder(comm, order)) return {};
  const std::uint64_t place = order != 0 ? order : comm.called[Index(me)];
  ++comm.called[Index(me)];
  if (comm.apart) return {place + 1, comm.apart->Count(event, me)};
  const auto [name, kind, sync] = FactsOf(event.call);
  if (kind == Class::kCollective && sync != Sync::kNeighbors) comm.passed[Index(me)] = place + 1;
  Position& there = PositionAt(rank, event, comm, place);
  if (!there.came.empty()) there.came[Index(me)] = true;
  ++there.entered;
  CompareWithFirst(rank, event, comm, there);
  if (comm.broken && order == 0 && !comm.enqueued) {
    BeginApart(rank, event, comm);
    return {place + 1, comm.apart->Count(event, me)};
  }
  if (!there.mismatch && there.entered == comm.size) comm.positions.Erase(place);
  return {place + 1, {}};
}

void Judge::BeginApart(int rank, const Event& event, Communicator& comm) {
  comm.apart.emplace(comm.size);
  const int me = history_.RankIn(rank, event.comm);
  for (std::size_t each = 0; each < comm.positions.size(); ++each) {
    const Position& there = comm.positions[each];
    for (int member = 0; member < comm.size; ++member) {
      const bool now = member == me && there.place + 1 == comm.called[Index(me)];
      if (now || !comm.Came(there, Index(member))) continue;
      const Turn turn = comm.apart->Count(there.first, member);
      const int world = comm.world[Index(member)];
      if (world >= 0) NoteTurn(world, event.comm, {there.place + 1, turn});
    }
  }
}

void Judge::NoteTurn(int rank, std::uint64_t comm, const Place& place) {
  const auto note = [&](auto& call) {
    const bool its = call.event.comm == comm && call.place.position == place.position;
    if (its) call.place.turn = place.turn;
  };
  Rank& mine = history_.ranks[Index(rank)];
  for (auto& [thread, open] : mine.open) note(open);
  for (auto& [number, request] : mine.requests) note(request);
}

void Judge::CompareWithFirst(int rank, const Event& event, Communicator& comm, Position& there) {
  if (comm.broken) {
    const int me = history_.MembershipIn(rank, event.comm).me;
    if (event.call != there.first.call) there.different.push_back(me);
    return;
  }
  Compare(rank, event, comm, there);
  comm.broken = there.mismatch;
}

Position& Judge::PositionAt(int rank, const Event& event, Communicator& comm, std::uint64_t place) {
  const std::size_t number = comm.positions.Before(place);
  if (number < comm.positions.size() && comm.positions[number].place == place) {
    return comm.positions[number];
  }
  Position& there = comm.positions.Begin(place);
  BeginPosition(rank, event, comm, there);
  return there;
}

void Judge::BeginPosition(int rank, const Event& event, const Communicator& comm, Position& there) {
  there.first = event;
  there.first_rank = rank;
  if (OfGroup(event.call)) there.came.assign(Index(comm.size), false);
  if (comm.broken) return;
  for (const int member : comm.ended) TellMissing(comm.world[Index(member)], there);
}

void Judge::Compare(int rank, const Event& event, Communicator& comm, Position& position) {
  const Event& first = position.first;
  const int other = position.first_rank;
  const auto add = [&](Cause cause, const std::string& what) {
    const std::string both = OfGroup(event.call)
                                 ? fmt::format("rank {} in {}, rank {} in {}", other,
                                               Named(other, first), rank, Named(rank, event))
                                 : fmt::format("rank {} at {}, rank {} at {}", other,
                                               At(other, first.site), rank, At(rank, event.site));
    Add(cause, {other, rank}, fmt::format("{}: {}", what, both), event.site);
  };
  const char* const name = FactsOf(event.call).name;
  if (event.call != first.call) {
    position.mismatch = true;
    position.different.push_back(history_.RankIn(rank, event.comm));
    Add(Cause::kCallMismatch, {other, rank},
        fmt::format("rank {} calls {} where rank {} calls {}", rank, Named(rank, event), other,
                    Named(other, first)),
        event.site);
    return;
  }
  if (Rooted(event.call) && event.peer != first.peer) {
    position.mismatch = !OfGroup(event.call);
    add(Cause::kRootMismatch,
        fmt::format("the root of {} is {} and {}", name, first.peer, event.peer));
  } else if (event.tag != first.tag && event.tag != events::kUserOp &&
             first.tag != events::kUserOp) {
    add(Cause::kOperatorMismatch, fmt::format("{} with different operators", name));
  } else if (!SameData(first.type, first.count, event.type, event.count)) {
    comm.uneven = position.place + 1;
    add(Cause::kDatatypeMismatch,
        OfGroup(event.call) && Bytes(first) != Bytes(event)
            ? fmt::format("{} of {} and {} bytes", name, Bytes(first), Bytes(event))
            : fmt::format("{} with different datatypes or counts", name));
  } else if (!SameData(event.type, event.count, event.type2, event.count2)) {
    comm.uneven = position.place + 1;
    Add(Cause::kDatatypeMismatch, {rank},
        fmt::format("rank {} sends other data than it receives in {} at {}", rank, name,
                    At(rank, event.site)),
        event.site);
  }
}

void Judge::NothingMoreFrom(int rank, bool process_over) {
  for (const auto& [name, me] : history_.ranks[Index(rank)].in) {
    Communicator& comm = history_.communicators[name];
    if (process_over || !comm.enqueued) EndMember(rank, comm, me);
  }
}

void Judge::EndMember(int rank, Communicator& comm, int me) {
  if (std::count(comm.ended.begin(), comm.ended.end(), me) > 0) return;
  comm.ended.push_back(me);
  if (comm.broken || comm.inter) return;
  if (const Position* const missed = comm.FirstMissed(me)) TellMissing(rank, *missed);
  if (comm.enqueued) TellHalves(comm, me);
}

// The same call on another communicator, by the rank that misses it here, unanswered there.
bool Judge::CalledElsewhere(int rank, int other, Call call) const {
  for (const auto& [name, me] : history_.ranks[Index(rank)].in) {
    const Communicator& comm = history_.communicators.at(name);
    const int there = history_.RankIn(other, name);
    const Position* const missed = there < 0 ? nullptr : comm.FirstMissed(there);
    if (missed && missed->first_rank == rank && missed->first.call == call) return true;
  }
  return false;
}

void Judge::TellMissing(int rank, const Position& position) {
  if (OfNccl(position.first.call)) return TellNotIssued(rank, position);
  if (OfGroup(position.first.call)) return TellGone(rank, &position);
  const int other = position.first_rank;
  const char* const name = FactsOf(position.first.call).name;
  const std::string where = At(other, position.first.site);
  if (CalledElsewhere(rank, other, position.first.call)) {
    Add(Cause::kCommunicatorMismatch, {rank, other},
        fmt::format("rank {} calls {} on another communicator than rank {} at {}", rank, name,
                    other, where),
        position.first.site);
    return;
  }
  Add(Cause::kMissingCall, {rank},
      fmt::format("rank {} ends without {}, which rank {} called at {}", rank, name, other, where),
      position.first.site);
}

}  // namespace lockstep::watch::judge
