// The judge of a watched MPI job: events in, findings out. It reads no clock, no file, no process;
// a test gives it literal events. Each finding is told once.
//
//   Judge judge(size, locate);
//   judge.Take(rank, event);                 in each rank's own order; any order among ranks
//   for (const Finding& finding : judge.Tell()) …
//   judge.Standstill()                       who can never go on, as far as events say
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "watch/judge/finding.h"
#include "watch/judge/history.h"
#include "watch/judge/wait_graph.h"

namespace lockstep::watch::judge {

struct Options {
  bool races = false;  // tell of messages that race for a wildcard, also where nothing fails
  bool leaks = false;  // tell of objects that nobody freed, which harms nobody
};

enum class End {
  kExited,
  kQuit,  // by _exit(): of itself, or in a handler of a signal that somebody sent
  kDied,
};

class Judge {
 public:
  Judge(int size, Locate locate, Options options = {});

  void Take(int rank, std::span<const Event> some);
  void Take(int rank, const Event& event) { Take(rank, {&event, 1}); }
  // How many collectives of the communicators of `cycle` others have called more than this rank.
  std::uint64_t Behind(int rank, const events::Cycle& cycle);
  // All ranks, none of which is behind, made their `cycles` so many times, which is over. False:
  // that is not what can be taken at once, and nothing was done.
  bool TakeCycles(std::span<const events::Cycle> cycles, std::uint64_t times);
  // `code`: of a rank that did not die. `first`: it was gone while no other rank had died. Else a
  // launcher may have ended it because of the other.
  void Ended(int rank, End how, int code = 0, bool first = true);
  // By a signal, and for so long that it is told. It may be continued.
  void Stopped(int rank);
  void Continued(int rank) { stopped_.erase(rank); }
  void ThreadsMayCall(int rank) { history_.ranks[Index(rank)].any_thread = true; }
  // So many of the program's are there now; 0: not known.
  void ThreadsLive(int rank, int threads) { history_.ranks[Index(rank)].live_threads = threads; }
  // Whatever ends from now on was ended by somebody else.
  void EndsAreNoNews() { rank_lost_ = true; }
  // All processes are gone: what nobody received will never be.
  void AllEnded();

  std::vector<Finding> Tell();
  StuckRanks Standstill() const { return FindStuck(history_); }
  // No rank has called anything for `seconds`: who has not made what others enqueued, of NCCL's.
  void Silent(int seconds);
  // The finding for ranks that two looks proved to be stuck.
  void Hangs(const StuckRanks& stuck);
  std::string Describe(int rank) const;          // "in MPI_Recv from rank 1, tag 7, at …"
  std::string Describe(const Wait& wait) const;  // … of a rank that is stuck
  const History& history() const { return history_; }
  // What the program called, and of which nothing is known but that.
  const std::set<Call>& not_followed() const { return not_followed_; }

 private:
  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }
  static bool IsUnseenWay(const Event& made);
  void TakeOne(int rank, const Event& event);
  void Enter(int rank, const Event& event);
  void Follow(int rank, OpenCall& open);
  void Post(int rank, const OpenCall& open);
  void Leave(int rank, const Event& event);
  void Failed(int rank, std::uint16_t thread);
  void Succeeded(int rank, const OpenCall& open);
  void Done(int rank, const Event& event);
  void Got(int rank, const Event& event);
  void GotAsked(int rank, const Request& request, const Event& event);
  void MadeObject(int rank, const Event& event);
  void Freed(int rank, std::uint32_t number);
  void NoteMembers(const Event& event);
  void Start(int rank, std::uint32_t request);
  void Release(int rank, std::uint32_t request, Call call);
  // One half of a message was given up, and may have met its other one: nothing is sure there.
  void StopComparing(int rank, const Event& half);
  // A message that nobody gets, where `done` says that its send was cancelled.
  void Withdraw(int rank, const Request& send, const Event& done);
  bool CheckArguments(int rank, const Event& event);
  // Collectives that are over, and of which there is nothing to tell: nearly all. How many; what
  // comes next needs a closer look.
  std::size_t PassCollectives(int rank, std::span<const Event> some);
  bool PassCollective(int rank, const Event& event, Communicator& comm, std::uint64_t place);
  // The rank is in no call, this one is over and the same everywhere, and nobody misses one there.
  bool IsEven(int rank, const Event& call, const Event& elsewhere);
  void EnterBlocking(int rank, OpenCall& open);
  Place EnterCollective(int rank, const Event& event);
  Position& PositionAt(int rank, const Event& event, Communicator& comm, std::uint64_t place);
  void BeginPosition(int rank, const Event& event, const Communicator& comm, Position& there);
  void CompareWithFirst(int rank, const Event& event, Communicator& comm, Position& there);
  // Counts what members called from the first place on that not all of them came to.
  void BeginApart(int rank, const Event& event, Communicator& comm);
  void NoteTurn(int rank, std::uint64_t comm, const Place& place);
  void Compare(int rank, const Event& event, Communicator& comm, Position& position);
  // Of MPI's communicators and groups; of NCCL's, where the process is over.
  void NothingMoreFrom(int rank, bool process_over);
  void EndMember(int rank, Communicator& comm, int me);
  void FollowNccl(int rank, const Event& event);
  void Answer(int rank, const Event& message);
  void TellHalves(Communicator& comm, int ended);
  void TellNotIssued(int rank, const Position& position);
  void EndedInGroup(int rank, End how, int code, bool first);
  bool NoteGone(int rank, End how, int code);  // true: in good order
  void TellMissedBy(int rank, bool died);
  bool EndsAreConsequences() const;
  // Why ranks wait was told, or others than this one are suspected.
  bool Explained(int suspect = -1) const {
    const bool suspected = !suspects_.empty() && !suspects_.contains(suspect);
    return explained_ || !stopped_.empty() || suspected;
  }
  void TellGone(int rank, const Position* missed);
  bool CalledElsewhere(int rank, int other, Call call) const;
  void TellMissing(int rank, const Position& position);
  std::uint64_t Send(int rank, const Event& event);
  void Received(int rank, const Event& receive, std::uint64_t order, int source, int tag,
                bool blocked);
  struct Receipt;
  std::vector<Receipt> ReceiptsOf(const ChannelKey& key, const Channel& channel) const;
  bool IsOpen(const ChannelKey& key, const Taken& taken) const;
  using Halves = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<Halves> PairsOf(const ChannelKey& key, const Channel& channel) const;
  void Settle(const ChannelKey& key, Channel& channel);
  static void GiveUpOldest(Channel& channel);
  // Receives that the rank is in, and that certainly take a message that does not fit. True where
  // there is one.
  bool TellUnfit(int rank);
  void PairIfSure(int rank, const Event& receive, std::uint64_t order);
  void PairOf(Channel& channel, std::deque<Message>::iterator sent,
              std::deque<Taken>::iterator taken);
  void Pair(const Message& message, const Taken& taken);
  // Only where races are asked for:
  void CheckRace(int rank, const Event& receive, int source);
  bool TellSources(int rank, const Event& receive, const std::pair<int, int>& sources);
  void TellRace(int rank, const Event& receive, int one, int other);
  void NoteMatched(const Message& message, const Taken& taken);
  bool DecideRace(const Matched& any, const Matched& other);
  void NoteHeard(int rank, const Event& event);
  std::uint64_t EpochOf(int rank) const;
  Knowledge KnownBy(int rank) const;
  std::string Describe(int rank, const Event* subject) const;
  bool TellNearMiss(const Wait& wait);
  bool TellNeverStarted(const Wait& wait);
  bool WouldFree(const Event& send, int rank, const Event& receive) const;
  // Ranks that wait after others were lost, of which nothing was told.
  bool TellLostTogether(const StuckRanks& stuck);
  void TellDeadlock(const StuckRanks& stuck, const std::vector<const Wait*>& heart);
  void TellHang(Cause cause, std::vector<int> culprits, std::string text);
  void TellUnfinished(int rank);
  void TellLeaks(int rank);
  void TellLostMessages();
  // Null: of this cause and place it was told before. Valid until the next finding.
  Finding* Add(Cause cause, std::vector<int> culprits, std::string text, std::uint64_t site,
               bool proved = true);
  Finding& Found(Cause cause, std::vector<int> culprits, std::string text, bool proved);
  std::string At(int rank, std::uint64_t site) const { return locate_(rank, site); }
  // "MPI_Bcast at solver.c:31"; of a group "broadcast 4 at train.py:31", as far as that is known.
  std::string Named(int rank, const Event& call) const;
  // "recv from rank 1, tag 7, at train.py:31"; what is no message as Named() does.
  std::string NamedMessage(int rank, const Event& group_call) const;
  // Where a message goes or comes from: "rank 1".
  std::string NamedPeer(const Event& message) const;
  std::string WhereNow(int rank, const Event& group_call) const;  // " at train.py:31", or nothing

  History history_;
  Locate locate_;
  Options options_;
  std::vector<Finding> findings_;
  std::set<std::pair<Cause, std::string>> told_;               // by cause and place
  std::map<std::pair<int, std::uint64_t>, int> first_source_;  // of wildcards, by rank and site
  std::map<std::pair<int, std::uint64_t>, std::pair<Event, std::pair<int, int>>> unnamed_races_;
  std::map<int, std::deque<Matched>> matched_;           // the newest of each rank
  std::vector<std::pair<Matched, Matched>> open_races_;  // that are not decided
  std::set<Call> not_followed_;
  bool unseen_ways_ = false;  // by which ranks may hear of others: windows, files, neighbours
  bool explained_ = false;  // a finding was told already: a standstill after it is its consequence
  bool rank_lost_ = false;
  bool died_untold_ = false;       // a rank died, and nobody was found to wait for it
  int died_inside_ = -1;           // the first of these, where it died in a call of a group
  bool died_inside_well_ = false;  // … by _exit(0)
  std::set<int> stopped_;          // ranks, now
  std::set<int> suspects_;         // of the newest silence, who called nothing since
  int waits_for_them_ = -1;        // and nor did this one
};

}  // namespace lockstep::watch::judge
