// An MPI library of one process, which runs a random program by a random schedule. It writes what
// the watching library would write, and knows what nobody else can: what met what, and who can
// never go on. It shares no line with the judge.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "watch/events/event.h"
#include "watch/fuzz/program.h"

namespace lockstep::watch::fuzz {

using events::Event;

bool IsCollective(events::Call call);
// Of events::Flag, what the event of such a call has.
std::uint8_t FlagsOf(events::Call call);
// How many elements a receive has room for.
std::int64_t RoomOf(const Action& action);

// A message, from its send on.
struct Sent {
  int source = 0, to = 0;  // of the world
  Action action;
  bool buffered = false;   // its sender needs nobody
  int receive = -1;        // that took it
  std::vector<int> clock;  // of its sender
  int over = INT_MAX;      // what its sender's own clock was when it knew that it is over
};

// A receive, from its post on.
struct Posted {
  int rank = 0;
  Action action;
  int message = -1;        // that it took
  bool known = false;      // its rank was told which
  std::vector<int> clock;  // of its rank
  int told = INT_MAX;      // that rank's own clock when it was told
};

// A blocked rank's need.
struct RankNeed {
  std::set<int> any_of;  // each of these ranks can meet it
  bool soft = false;     // who sees calls only can't tell whether the library met it
};

class Library {
 public:
  explicit Library(const Program& program);

  // Does one random thing that can happen; false: nothing can any more.
  bool Advance();
  // The same until now, other things from now on.
  void Reschedule(std::uint64_t seed) { random_ = Random(seed); }

  const std::vector<Event>& events(int rank) const { return ranks_[Index(rank)].events; }
  bool died(int rank) const { return ranks_[Index(rank)].state == State::kDead; }
  bool finished(int rank) const { return ranks_[Index(rank)].state == State::kFinished; }
  // No message is under way, and none of these ranks may leave its call: time shows no more.
  bool Waits(const std::set<int>& ranks) const;
  // Of a rank in a call: calls entered so far. It grows when the rank goes on.
  std::size_t calls(int rank) const { return ranks_[Index(rank)].entered; }

  // When nothing can happen any more: whom ranks in a call would need.
  struct Blocked {
    const Action* action = nullptr;
    bool all = true;  // its needs, or one of them
    std::vector<RankNeed> needs;
    bool pending = false;             // it waits for what was matched, too, as far as calls show
    std::vector<int> receives;        // that it waits for, without a message
    std::vector<Action> collectives;  // … that are not over
  };
  std::map<int, Blocked> FindBlocked() const;
  // Of these, those that no rank which polls can free: who sees calls only can prove no more.
  std::set<int> FindStuck() const;
  // A rank has not been told yet which message its wildcard took.
  bool HidesMatches() const;

  const std::vector<Sent>& sent() const { return sent_; }
  const std::vector<Posted>& posted() const { return posted_; }
  // The first took the message that it took although another one fits, which a later receive of its
  // rank took and whose sender can't have known of that.
  bool Raced(const Posted& receive) const;
  // Of a request that its rank did not await: what it was posted with.
  std::vector<std::pair<int, Action>> Unawaited() const;
  const Action* ActionAt(int rank) const;  // it is in; null: in none

 private:
  enum class State : std::uint8_t { kReady, kInCall, kPolls, kDead, kFinished };
  struct RequestState {
    Action action;
    int message = -1;  // of a send
    int receive = -1;
    std::size_t position = 0;  // of a collective; 0: none
  };
  struct RankState {
    State state = State::kReady;
    std::vector<Action> actions;
    std::size_t next = 0;  // the action that it is in, or makes next
    std::size_t entered = 0;
    std::map<std::uint32_t, RequestState> requests;  // that are not over
    RequestState current;                            // what the open call is about
    std::vector<int> posted;                         // receives without a message, in order
    std::vector<int> arrived;                        // messages without a receive, in order
    std::vector<Event> events;
    std::vector<int> clock;  // of each rank, as far as this one may have heard of it
  };
  struct Place {
    std::vector<bool> came;
    Action first;
    bool broken = false;  // not all call the same here
    std::vector<int> clock;
  };
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }

  void Begin(int rank);
  void Enter(int rank);
  void Start(int rank, const Action& action, RequestState& request);
  void Return(int rank);
  void Deliver(std::size_t channel);
  int SendMessage(int rank, const Action& action);
  int PostReceive(int rank, const Action& action);
  std::size_t EnterCollective(int rank, const Action& action);
  bool Fits(const Posted& receive, const Sent& message) const;
  void Match(int receive, int message);
  bool IsOver(int rank, const RequestState& request) const;
  bool MayReturn(int rank) const;
  bool CollectiveIsOver(int rank, const RequestState& request) const;
  bool ProbeFinds(int rank) const;
  void EndRequest(int rank, std::uint32_t number);
  void Learn(int rank, const RequestState& over);

  Event EventOf(events::Phase phase, const Action& action) const;
  void Write(int rank, const Event& event) { ranks_[Index(rank)].events.push_back(event); }
  void WriteLeave(int rank, const Action& action);
  void WriteParts(int rank, const Action& action);
  void WriteDone(int rank, const Action& action, std::uint32_t request, int receive);

  void AddNeeds(int rank, const RequestState& request, Blocked& blocked) const;
  void NeedsOfCollective(int rank, const RequestState& request, std::vector<RankNeed>& needs) const;
  std::set<int> Sources(int rank, const Action& action) const;

  const Program& program_;
  Random random_;
  std::vector<RankState> ranks_;
  std::vector<Sent> sent_;
  std::vector<Posted> posted_;
  // Messages under way: a channel's arrive in order.
  std::map<std::tuple<std::size_t, int, int>, std::size_t> channel_of_;
  std::vector<std::vector<int>> channels_;
  std::vector<std::vector<std::size_t>> called_;  // by communicator and member
  std::vector<std::vector<Place>> places_;        // by communicator and place
};

// As the watching library names a communicator.
std::uint64_t NameOfComm(std::size_t comm);

}  // namespace lockstep::watch::fuzz
