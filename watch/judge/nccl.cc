// NCCL's calls only enqueue: who returned from one may still wait for the others. So nothing is
// said of a completion. What is proved is what members called, and that one calls nothing any more.
// All other silence is suspected at best.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "watch/judge/judge.h"

namespace lockstep::watch::judge {

using events::FactsOf;

namespace {

bool Contains(const std::vector<int>& members, int member) {
  return std::count(members.begin(), members.end(), member) > 0;
}

// What a rank may do because others are silent.
bool GivesUp(Call call) {
  return call == Call::kNcclFinalize || call == Call::kNcclDestroy || call == Call::kNcclAbort ||
         call == Call::kNcclRevoke;
}

// What would meet this call: of a message its other half, else the same.
const char* OtherHalf(Call call) {
  return FactsOf(call == Call::kNcclSend   ? Call::kNcclRecv
                 : call == Call::kNcclRecv ? Call::kNcclSend
                                           : call)
      .name;
}

// What was called first of all that members have not answered.
struct Unanswered {
  const Event* event = nullptr;  // null: nothing
  int rank = -1;
  std::vector<int> missing;

  void Consider(const Event& other, int its_rank, std::vector<int> its_missing) {
    if (its_missing.empty() || (event && event->ticks <= other.ticks)) return;
    event = &other;
    rank = its_rank;
    missing = std::move(its_missing);
  }
};

void Consider(const Communicator& comm, Unanswered* oldest) {
  for (std::size_t each = 0; each < comm.positions.size(); ++each) {
    const Position& position = comm.positions[each];
    std::vector<int> missing;
    for (std::size_t member = 0; member < comm.world.size(); ++member) {
      if (!comm.Came(position, member) && comm.world[member] >= 0)
        missing.push_back(comm.world[member]);
    }
    oldest->Consider(position.first, position.first_rank, std::move(missing));
  }
  for (const auto& [ends, halves] : comm.halves) {
    const int from = comm.world[static_cast<std::size_t>(ends.first)];
    const int to = comm.world[static_cast<std::size_t>(ends.second)];
    if (halves.empty() || from < 0 || to < 0) continue;
    const bool sends = halves.front().call == Call::kNcclSend;
    oldest->Consider(halves.front(), sends ? from : to, {sends ? to : from});
  }
}

Unanswered FindUnanswered(const History& history) {
  Unanswered oldest;
  for (const auto& [name, comm] : history.communicators) {
    if (comm.enqueued && !comm.broken) Consider(comm, &oldest);
  }
  return oldest;
}

}  // namespace

void Judge::FollowNccl(int rank, const Event& event) {
  if (!GivesUp(event.call)) {
    suspects_.erase(rank);
    if (rank == waits_for_them_) suspects_.clear();
  }
  const int me = history_.RankIn(rank, event.comm);
  if (me < 0) return;
  Communicator& comm = history_.communicators[event.comm];
  switch (event.call) {
    case Call::kNcclSend:
    case Call::kNcclRecv:
      if (!comm.broken) Answer(rank, event);
      break;
    case Call::kNcclFinalize:
    case Call::kNcclDestroy:
      EndMember(rank, comm, me);
      break;
    case Call::kNcclAbort:
    case Call::kNcclRevoke:
      comm.aborted.push_back(me);
      break;
    default:
      break;
  }
}

// The n-th send of one member to another and the n-th receive there are one message.
void Judge::Answer(int rank, const Event& message) {
  Communicator& comm = history_.communicators[message.comm];
  const bool sends = message.call == Call::kNcclSend;
  const int me = history_.RankIn(rank, message.comm);
  if (message.peer < 0 || message.peer >= comm.size) {
    Add(Cause::kInvalidRank, {rank},
        fmt::format("rank {} gives {} rank {} of {}", rank, Named(rank, message), message.peer,
                    comm.size),
        message.site);
    return;
  }
  std::deque<Event>& halves =
      comm.halves[sends ? std::pair(me, message.peer) : std::pair(message.peer, me)];
  if (halves.empty() || halves.front().call == message.call) {
    halves.push_back(message);
    if (Contains(comm.ended, message.peer)) TellHalves(comm, message.peer);
    return;
  }
  const Event other = halves.front();
  halves.pop_front();
  const int peer = comm.world[Index(message.peer)];
  if (other.count == message.count || other.count < 0 || message.count < 0) return;
  Add(Cause::kDatatypeMismatch, {rank, peer},
      fmt::format("a message of {} and {} bytes: rank {} in {}, rank {} in {}", other.count,
                  message.count, peer, Named(peer, other), rank, Named(rank, message)),
      message.site);
}

// What others send to this member, or want from it, and it will not answer.
void Judge::TellHalves(Communicator& comm, int ended) {
  for (const auto& [ends, halves] : comm.halves) {
    if (halves.empty()) continue;
    const auto [from, to] = ends;
    const bool sends = halves.front().call == Call::kNcclSend;
    if ((sends ? to : from) != ended) continue;
    Position missed;
    missed.first = halves.front();
    missed.first_rank = comm.world[Index(sends ? from : to)];
    TellNotIssued(comm.world[Index(ended)], missed);
  }
}

void Judge::TellNotIssued(int rank, const Position& position) {
  const Rank& mine = history_.ranks[Index(rank)];
  const Event& first = position.first;
  const int other = position.first_rank;
  const Communicator& comm = history_.communicators[first.comm];
  if (rank_lost_ || Explained(rank) || Contains(comm.aborted, history_.RankIn(other, first.comm)))
    return;
  const bool badly = !mine.gone.empty() && mine.gone != "ended";
  if (badly) return TellGone(rank, &position);
  // The other one may abort as well, and only be later.
  if (Contains(comm.aborted, history_.RankIn(rank, first.comm))) return;
  rank_lost_ = true;
  const bool over = mine.lost || mine.finalized;
  Add(Cause::kMissingCall, {rank},
      fmt::format("rank {} {} without {}; rank {} waits for it in {}", rank,
                  over ? "ended" : "gave up its communicator", OtherHalf(first.call), other,
                  Named(other, first)),
      0);
}

void Judge::Silent(int seconds) {
  const Unanswered oldest = FindUnanswered(history_);
  if (Explained() || rank_lost_ || !oldest.event) return;
  const int late = oldest.missing.front();
  suspects_ = {oldest.missing.begin(), oldest.missing.end()};
  waits_for_them_ = oldest.rank;
  const std::string& gone = history_.ranks[Index(late)].gone;
  std::string text = fmt::format(
      "rank {} has not called {}; rank {} waits for it in {}; no rank has called anything for "
      "{} s; rank {} {} {}",
      fmt::join(oldest.missing, ", "), OtherHalf(oldest.event->call), oldest.rank,
      Named(oldest.rank, *oldest.event), seconds, late, gone.empty() ? "was last seen" : gone,
      Describe(late));
  // A silence that ends explains nothing of what comes later.
  Found(Cause::kMissingCall, oldest.missing, std::move(text), false).hangs = true;
}

}  // namespace lockstep::watch::judge
