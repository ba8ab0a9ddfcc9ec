// Collectives by position: the n-th call of each member of a communicator belongs together. What
// the first member called is compared with what the others call.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

}  // namespace

void Judge::EnterCollective(int rank, const Event& event, std::uint64_t* position) {
  const int me = history_.RankIn(rank, event.comm);
  if (me < 0) return;
  Communicator& comm = history_.communicators[event.comm];
  if (comm.inter || comm.broken) return;
  const std::uint64_t place = comm.called[Index(me)]++;
  *position = place + 1;
  if (FactsOf(event.call).call_class == Class::kCollective) comm.passed[Index(me)] = place + 1;
  if (place == comm.base + comm.positions.size()) {
    comm.positions.push_back({event, rank, 0, false, {}});
    for (const int member : comm.ended) {
      if (comm.called[Index(member)] <= place) {
        TellMissing(comm.world[Index(member)], comm.positions.back());
      }
    }
  }
  Position& there = comm.positions[place - comm.base];
  ++there.entered;
  Compare(rank, event, there);
  if (there.mismatch) {
    comm.broken = true;
    return;
  }
  while (!comm.positions.empty() && comm.positions.front().entered == comm.size) {
    comm.positions.pop_front();
    ++comm.base;
  }
}

void Judge::Compare(int rank, const Event& event, Position& position) {
  const Event& first = position.first;
  const int other = position.first_rank;
  const std::string both = fmt::format("rank {} at {}, rank {} at {}", other, At(other, first.site),
                                       rank, At(rank, event.site));
  const auto add = [&](Cause cause, const std::string& what) {
    Add(cause, {other, rank}, fmt::format("{}: {}", what, both), event.site);
  };
  const char* const name = FactsOf(event.call).name;
  if (event.call != first.call) {
    position.mismatch = true;
    position.different.push_back(history_.RankIn(rank, event.comm));
    Add(Cause::kCallMismatch, {other, rank},
        fmt::format("rank {} calls {} at {} where rank {} calls {} at {}", rank, name,
                    At(rank, event.site), other, FactsOf(first.call).name, At(other, first.site)),
        event.site);
    return;
  }
  if (Rooted(event.call) && event.peer != first.peer) {
    add(Cause::kRootMismatch,
        fmt::format("the root of {} is {} and {}", name, first.peer, event.peer));
  } else if (event.tag != first.tag && event.tag != events::kUserOp &&
             first.tag != events::kUserOp) {
    add(Cause::kOperatorMismatch, fmt::format("{} with different operators", name));
  } else if (!SameData(first.type, first.count, event.type, event.count)) {
    add(Cause::kDatatypeMismatch, fmt::format("{} with different datatypes or counts", name));
  } else if (!SameData(event.type, event.count, event.type2, event.count2)) {
    Add(Cause::kDatatypeMismatch, {rank},
        fmt::format("rank {} sends other data than it receives in {} at {}", rank, name,
                    At(rank, event.site)),
        event.site);
  }
}

void Judge::NothingMoreFrom(int rank) {
  for (const auto& [name, me] : history_.ranks[Index(rank)].in) {
    Communicator& comm = history_.communicators[name];
    comm.ended.push_back(me);
    const std::uint64_t called = comm.called[Index(me)];
    if (comm.broken || comm.inter || called >= comm.base + comm.positions.size()) continue;
    TellMissing(rank, comm.positions[called - comm.base]);
  }
}

// The same call on another communicator, by the rank that misses it here, unanswered there.
bool Judge::CalledElsewhere(int rank, int other, Call call) const {
  for (const auto& [name, me] : history_.ranks[Index(rank)].in) {
    const Communicator& comm = history_.communicators.at(name);
    const int there = history_.RankIn(other, name);
    if (there < 0 || comm.called[Index(there)] < comm.base) continue;
    const std::uint64_t place = comm.called[Index(there)] - comm.base;
    if (place < comm.positions.size() && comm.positions[place].first_rank == rank &&
        comm.positions[place].first.call == call) {
      return true;
    }
  }
  return false;
}

void Judge::TellMissing(int rank, const Position& position) {
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
