// What is known of a job so far: communicators, messages under way, requests, open calls. It grows
// with what is open, not with what has happened: matched messages and complete collectives go.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "watch/events/event.h"
#include "watch/judge/by_thread.h"
#include "watch/judge/calls_apart.h"
#include "watch/judge/finding.h"
#include "watch/judge/positions.h"
#include "watch/judge/windows.h"

namespace lockstep::watch::judge {

using events::Call;
using events::Event;

struct Communicator {
  int size = 0;
  bool inter = false;
  bool enqueued = false;  // NCCL's: its calls return before they are done
  int reported = 0;
  std::vector<int> world;             // of each member, -1: not known yet
  std::vector<std::uint64_t> called;  // collectives of each member
  std::vector<std::uint64_t> passed;  // of these, how many when the last blocking one was entered
  Positions positions;                // those that members miss
  std::vector<int> ended;             // members that call nothing any more
  bool broken = false;                // its order is lost: nothing more is compared
  std::optional<CallsApart> apart;    // broken by calls of MPI that differ: those from there on
  std::uint64_t uneven = 0;           // the newest position where MPI's data differed; 0: none
  std::vector<int> aborted;           // members that need nothing from it any more
  // NCCL's messages without their other half, by (from, to): sends only, or receives only.
  std::map<std::pair<int, int>, std::deque<Event>> halves;

  bool Came(const Position& there, std::size_t member) const {
    return there.came.empty() ? called[member] > there.place : there.came[member];
  }
  // The first position that others came to and `member` did not; null: none.
  const Position* FirstMissed(int member) const;
};

// What a rank knows of others at a moment, as far as races need it (races.cc).
struct Knowledge {
  std::uint64_t epoch = 0;  // blocking collectives of the world that it has entered
  bool deaf = false;        // it has heard nothing of others since the last one
  bool met_all = false;     // that one lets nobody go before all came, or there was none
};

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct Message {
  std::uint64_t number = 0;
  Event sent;
  int source = 0;            // in the world
  std::uint64_t passed = 0;  // collectives of this communicator that its sender came through
  Knowledge known = {};      // by its sender
};

struct Taken {
  int tag = 0;
  Event receive;
  int rank = 0;              // in the world
  bool blocked = false;      // the receiver did nothing else until it came
  std::uint64_t called = 0;  // collectives that it had called by then
  std::uint64_t order = 0;   // among the receives of its rank
};

// A message and the receive that took it.
struct Matched {
  Message message;
  Taken taken;
};

// From one member to another of a communicator, by their ranks in it.
struct Channel {
  std::deque<Message> sent;  // and not received
  // Received, in the order in which the receives were posted, while the sender's history is not
  // read so far, or a receive of any source may have taken the message instead.
  std::deque<Taken> taken;
  // Of receives posted before this one nobody knows any more which message they took. kNever: a
  // half was given up, and may have been part of any.
  std::uint64_t compared_from = 0;
};
using ChannelKey = std::tuple<std::uint64_t, int, int>;

// Of a collective in the order of its communicator.
struct Place {
  std::uint64_t position = 0;     // 0: not known
  Turn turn = {};                 // where calls differ
  std::vector<int> sources = {};  // of neighbours: members of which this one gets something
};

struct Request {
  Event event;
  bool persistent = false;
  bool active = false;
  bool started = false;
  bool waited = false;
  bool cancelled = false;     // asked to be: who waits for it is told soon
  std::uint64_t message = 0;  // of a send
  std::uint64_t order = 0;    // of a receive, among those of its rank
  Place place = {};           // of a collective
};

struct OpenCall {
  Event event;
  std::vector<Event> parts;
  std::uint64_t message = 0;
  std::uint64_t order = 0;
  Place place;
  Place leaders;      // of MPI_Intercomm_create, where this rank leads its side
  bool over = false;  // the library has returned, and the process goes on to say so
};

// A communicator and the own rank in it.
struct Membership {
  std::uint64_t name = 0;
  Communicator* comm = nullptr;  // null: not known
  int me = -1;
};

struct Rank {
  std::unordered_map<std::uint64_t, int> in;  // own rank in a communicator
  Membership newest;                          // that was asked for
  ByThread<OpenCall> open;
  ByThread<std::vector<Event>> parts;
  std::map<std::uint32_t, Request> requests;
  std::map<std::uint64_t, std::uint32_t> posted;  // active receives of these, by order
  std::set<ChannelKey> unsettled;  // to it, where more than the newest half may find its other one
  std::map<std::uint32_t, Event> objects;
  ByThread<bool> threads;
  bool begun = false;
  bool finalizing = false;
  bool finalized = false;
  bool lost = false;
  bool aborted = false;
  bool misused = false;  // an argument of it was wrong: what follows is a consequence
  bool any_thread = false;
  int live_threads = 0;          // where any_thread; 0: not known
  bool in_group = false;         // process groups: its threads call, and it needs no Finalize
  bool failed = false;           // a collective of a group ended with an error
  bool met_all = true;           // as in Knowledge, now
  std::uint64_t heard = kNever;  // the epoch in which it heard of others last, and first
  std::uint64_t first_heard = kNever;
  Event last;        // the group's call that was entered last
  std::string gone;  // of a rank in groups that ended: "died", "exited with code 1"

  // Its calls have one order.
  bool OneThread() const { return !any_thread && threads.size() == 1; }
};

// Where in the user's program: "solver.c:31".
using Locate = std::function<std::string(int rank, std::uint64_t site)>;

struct History {
  int size = 0;
  std::vector<Rank> ranks;
  std::unordered_map<std::uint64_t, Communicator> communicators;
  std::map<ChannelKey, Channel> channels;
  std::unordered_map<std::uint64_t, Window> windows;  // by the name of their members
  std::uint64_t last_message = 0;
  std::uint64_t last_order = 0;
  bool spawns = false;          // a rank has called MPI_Comm_spawn
  bool smaller_groups = false;  // of which no name is known that all members share

  // The member's rank in the world, -1 where it is not known.
  int WorldRank(std::uint64_t comm, int member) const;
  // The rank is in groups, and its main thread waits for a message.
  bool MainThreadWaits(int rank) const;
  int RankIn(int rank, std::uint64_t comm) const;  // -1: not known
  const Membership& MembershipIn(int rank, std::uint64_t comm);
};

}  // namespace lockstep::watch::judge
