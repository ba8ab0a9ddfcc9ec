// Whom a member of a communicator waits for in a collective: by its place in the order, where calls
// are alike; by the kinds of calls, where they differ. What a library passes on from member to
// member is its own business.
#include "watch/judge/collective_needs.h"

#include <algorithm>
#include <utility>

namespace lockstep::watch::judge {
namespace {

using events::FactsOf;
using events::Sync;

// The position that a rank is in; nullptr where it is over or not known.
const Position* PositionOf(const Communicator& comm, std::uint64_t position) {
  if (position == 0) return nullptr;
  return comm.positions.Find(position - 1);
}

bool Differs(const Position& there, int member) {
  return std::ranges::count(there.different, member) > 0;
}

constexpr Call kCountsOfMembers[] = {
    Call::kGatherv,        Call::kIgatherv,        Call::kScatterv,  Call::kIscatterv,
    Call::kAllgatherv,     Call::kIallgatherv,     Call::kAlltoallv, Call::kIalltoallv,
    Call::kReduce_scatter, Call::kIreduce_scatter, Call::kAlltoallw, Call::kIalltoallw};
constexpr Call kDataOfFiles[] = {Call::kFile_write_all, Call::kFile_read_all,
                                 Call::kFile_write_at_all, Call::kFile_read_at_all,
                                 Call::kFile_set_view};

// It may do without any other member. With a count for each member one may be 0: a library may not
// wait for who gives nothing, and it takes its time for what others give. A file may take as long.
bool MayBeAlone(const Event& event) {
  if (std::ranges::count(kDataOfFiles, event.call) > 0) return true;
  return std::ranges::count(kCountsOfMembers, event.call) > 0 &&
         (event.flags & events::kAllGive) == 0;
}

// Whether `me` cannot leave the collective before `member` entered it, whatever is buffered.
bool MustWaitFor(const Event& event, const Place& place, int me, int member) {
  const Sync sync = FactsOf(event.call).sync;
  if (sync == Sync::kNeighbors) return std::ranges::count(place.sources, member) > 0;
  return sync == Sync::kAll || (sync == Sync::kRoot && member == event.peer) ||
         (sync == Sync::kAtRoot && me == event.peer) || (sync == Sync::kLower && member < me);
}

// The rank is in a call of this kind, on the same communicator.
bool IsInSuch(const History& history, int rank, const Event& collective) {
  const auto such = [&](const Event& event) {
    return event.comm == collective.comm && event.call == collective.call;
  };
  const Rank& other = history.ranks[Index(rank)];
  return std::ranges::any_of(other.open,
                             [&](const auto& each) { return such(each.second.event); }) ||
         std::ranges::any_of(other.requests, [&](const auto& each) {
           return each.second.active && such(each.second.event);
         });
}

// Of a collective where members gave different things. What the library makes of it is its own
// business, so every member that goes on may free the rank. If none does, it is stuck where a
// member has not made the call. It is, too, where all have left it: what they gave is there, and
// soon taken. Who needs no other member, such as the root of a broadcast, may leave nevertheless.
std::vector<Need> NeedsApart(const History& history, int rank, const Event& event,
                             const Place& place) {
  const Communicator& comm = history.communicators.at(event.comm);
  const int me = history.RankIn(rank, event.comm);
  constexpr std::int64_t kSmall = 1 << 16;
  const std::int64_t bytes = event.count * (event.type < 256 ? 1 : event.type & 255);
  const bool small = bytes >= 0 && bytes <= kSmall;
  const bool unanswered = comm.apart && comm.apart->IsUnanswered(event, place.turn, me, small);
  Need others{{}, true, &event, true};
  bool left = true;
  for (int member = 0; member < comm.size; ++member) {
    const int world = comm.world[Index(member)];
    if (world < 0) return {};
    if (member == me) continue;
    others.any_of.push_back(world);
    if (unanswered && MustWaitFor(event, place, me, member)) others.soft = false;
    left = left && !IsInSuch(history, world, event);
  }
  if (!unanswered && !left) return {};
  return {std::move(others)};
}

// All of its side have come. Nobody goes on before the leader, who meets that of the other side. Of
// the two leaders, one may go on while the other one waits for its side, as the library likes.
std::vector<Need> NeedsOfLed(const History& history, int me, const Event& event,
                             const Place& place) {
  const bool leads = event.phase == events::Phase::kPart;
  const int awaited = leads ? 1 - me : event.count2;
  const int other = history.WorldRank(event.comm, awaited);
  if (awaited == me || other < 0 || place.position == 0) return {};
  const bool there = std::ranges::any_of(history.ranks[Index(other)].open, [&](const auto& each) {
    const OpenCall& open = each.second;
    if (leads) {
      const auto side = history.communicators.find(open.event.comm);
      return open.leaders.position == place.position && open.parts.front().comm == event.comm &&
             side != history.communicators.end() && PositionOf(side->second, open.place.position);
    }
    return open.place.position == place.position && open.event.comm == event.comm;
  });
  return there ? std::vector<Need>{{{other}, leads, &event}} : std::vector<Need>{};
}

// Where calls are alike, as far as members have come.
std::vector<Need> NeedsByPlace(const Communicator& comm, const Position& there, int me,
                               const Event& event, const Place& place) {
  std::vector<Need> needs;
  Need others{{}, true, &event};
  for (int member = 0; member < comm.size; ++member) {
    const bool entered =
        comm.Came(there, Index(member)) && Differs(there, member) == Differs(there, me);
    if (member == me || entered) continue;
    const int world = comm.world[Index(member)];
    if (world < 0) return {};
    if (MustWaitFor(event, place, me, member)) {
      needs.push_back({{world}, false, &event});
    } else if (FactsOf(event.call).sync != Sync::kNeighbors) {
      others.any_of.push_back(world);
    }
  }
  if (needs.empty() && !others.any_of.empty()) needs.push_back(others);
  return needs;
}

}  // namespace

std::vector<Need> NeedsOfCollective(const History& history, int rank, const Event& event,
                                    const Place& place) {
  const auto found = history.communicators.find(event.comm);
  if (found == history.communicators.end()) return {};
  const Communicator& comm = found->second;
  if (comm.enqueued || MayBeAlone(event)) return {};
  const Position* const there = PositionOf(comm, place.position);
  const bool uneven = there == nullptr && place.position != 0 && place.position == comm.uneven;
  if (comm.apart ? place.turn.calls != 0 : uneven) return NeedsApart(history, rank, event, place);
  const int me = history.RankIn(rank, event.comm);
  if (event.call == Call::kIntercomm_create && there == nullptr) {
    return NeedsOfLed(history, me, event, place);
  }
  if (comm.apart || there == nullptr) return {};
  return NeedsByPlace(comm, *there, me, event, place);
}

}  // namespace lockstep::watch::judge
