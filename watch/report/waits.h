// Who waited for whom in a watched job, and for how long. Pure: events in, totals out; no clock, no
// file, no process.
//
//   Waits waits(size, traced);
//   waits.Take(rank, event);            in each rank's own order; any order among ranks
//   for (const RankTotals& rank : waits.ranks()) …
//
// A call waits until the last moment that it needed from another rank, but only if it was still
// open then: nobody waits for what happens after it returned.
//   a collective         the entry of the last member that it needs (of the root in a broadcast)
//   a receive            the entry of its send
//   a send               the entry, or the posting, of its receive
//   MPI_Wait and its like  the same of the requests that it completes
//   MPI_Finalize         the entry of the last rank
// A call that never returned is not counted, nor is a Test. Memory grows with what is open.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "watch/events/event.h"

namespace lockstep::watch::report {

using events::Call;
using events::Event;

// Where in the program, and on which communicators: those that were made at one place are one.
// Addresses are those of one rank.
struct Place {
  Call call = Call::kNone;
  std::uint64_t site = 0;
  Call made_by = Call::kNone;  // its communicator; kInit: the world; kNone: the call has none
  std::uint64_t made_at = 0;   // the address; the number of a process group
  auto operator<=>(const Place&) const = default;
};

struct Blame {
  std::uint64_t times = 0;
  std::uint64_t ticks = 0;
};

// All calls of a rank at one place.
struct Spent {
  std::uint64_t calls = 0;      // that returned
  std::uint64_t came_last = 0;  // of its collectives: how often it was the last to enter
  std::uint64_t waited = 0;     // ticks, as all below
  std::uint64_t longest = 0;
  std::map<int, Blame> blamed;  // ranks that it waited for
};

struct PastCall {
  Place place;
  std::uint16_t thread = 0;
  std::int32_t peer = 0;
  std::int32_t tag = 0;
  std::uint64_t entered = 0;
  std::uint64_t left = 0;  // 0: it is open
  std::uint64_t waited = 0;
  int waited_for = -1;
};

struct Moment {
  std::uint64_t ticks = 0;
  int rank = 0;
};

// A call, and what it needs from others.
struct NeedyCall {
  PastCall past;
  int rank = 0;
  int unknown = 0;  // needs that were not seen yet
  bool late = false;
  std::vector<Moment> needs;
};

struct RankTotals {
  std::uint64_t begun = 0;  // ticks of its first event, and of its newest
  std::uint64_t ended = 0;
  std::map<Place, Spent> places;
  std::uint64_t calls = 0;
  std::uint64_t uncounted = 0;  // calls whose partner was not seen
  std::deque<std::shared_ptr<const NeedyCall>> newest;
};

class Waits {
 public:
  // The newest `traced` calls of each rank are kept.
  Waits(int size, std::size_t traced);
  void Take(int rank, const Event& event);
  const std::vector<RankTotals>& ranks() const { return totals_; }

 private:
  // One end of what two ranks do together, seen from the other.
  struct Link {
    std::optional<Moment> partner;
    std::shared_ptr<NeedyCall> waiter;
  };
  struct Half {
    Moment at;
    std::shared_ptr<Link> link;
  };
  struct Channel {
    std::deque<Half> sends;
    std::deque<Half> receives;
  };
  struct Member {
    std::uint64_t entered = 0;
    int rank = -1;  // in the world
    Place place;
    std::shared_ptr<NeedyCall> call;  // of a blocking collective
    std::shared_ptr<Link> link;       // of a posted one
  };
  struct Position {
    Event first;
    std::vector<Member> members;
    int entered = 0;
    int left = 0;
  };
  struct Communicator {
    int size = 0;
    bool inter = false;
    int freed = 0;
    std::vector<std::uint64_t> called;
    std::map<std::uint64_t, Position> positions;  // that are not complete
  };
  struct Membership {
    int me = 0;
    Call made_by = Call::kNone;
    std::uint64_t made_at = 0;
  };
  struct Request {
    Event event;
    std::shared_ptr<Link> link;
    bool active = false;
  };
  struct Thread {
    std::vector<Event> parts;
    Event event;
    std::shared_ptr<NeedyCall> call;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> position;  // communicator, place
  };
  struct Rank {
    std::unordered_map<std::uint64_t, Membership> in;
    std::map<std::uint16_t, Thread> threads;
    std::unordered_map<std::uint32_t, Request> requests;
    std::unordered_map<std::uint32_t, std::uint64_t> objects;  // numbers of communicators
  };
  using ChannelKey = std::tuple<std::uint64_t, int, int, int>;  // communicator, from, to, tag

  static std::size_t Index(int number) { return static_cast<std::size_t>(number); }
  Rank& RankOf(int rank) { return ranks_[Index(rank)]; }
  Communicator* Known(std::uint64_t comm);
  void Enter(int rank, const Event& event);
  void Follow(int rank, Thread& thread, const std::vector<Event>& parts);
  void Done(int rank, const Event& event);
  void Over(int rank, const Event& event, const std::shared_ptr<NeedyCall>& waits);
  void Leave(int rank, const Event& event);
  void Made(int rank, const Event& event);
  void Freed(int rank, const Event& event);
  void Start(int rank, std::uint32_t number, std::uint64_t ticks);
  void Release(int rank, std::uint32_t number, Call call);
  std::shared_ptr<Link> Send(int rank, const Event& event);
  void Receive(int rank, const Event& event, int source, int tag, std::shared_ptr<Link> link);
  void Meet(const ChannelKey& key, Half half, bool sends);
  void EnterCollective(int rank, const Event& event, Thread* thread, std::shared_ptr<Link> link);
  void LeaveCollective(const Thread& thread);
  void CompleteIfWhole(std::uint64_t comm, std::uint64_t place);
  void Complete(const Position& position);
  Place PlaceOf(int rank, const Event& event);
  void Await(const std::shared_ptr<NeedyCall>& call, const std::shared_ptr<Link>& link);
  void Resolve(Link& link, Moment partner);
  void Settle(NeedyCall& call);
  void CountOpen(int more);

  std::size_t traced_;
  std::vector<Rank> ranks_;
  std::vector<RankTotals> totals_;
  std::unordered_map<std::uint64_t, Communicator> communicators_;
  std::map<ChannelKey, Channel> channels_;
  std::int64_t open_ = 0;  // halves and positions
  bool broken_ = false;    // too much was open: nothing more is paired
};

}  // namespace lockstep::watch::report
