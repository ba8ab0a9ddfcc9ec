// The ranks of one job: their processes, the judge, and the two looks that prove a standstill.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/verdict/outcome.h"
#include "watch/judge/judge.h"
#include "watch/report/record.h"
#include "watch/report/waits.h"
#include "watch/run/process.h"
#include "watch/run/rank_ends.h"

namespace lockstep::watch::run {

class Job {
 public:
  // `several_hosts`: texts name the hosts of ranks. `now_ns`: a clock that never goes back.
  Job(int size, judge::Options options, bool several_hosts,
      std::function<std::int64_t()> now_ns = MonotonicNs);

  bool Has(int rank) const { return processes_.count(rank) > 0; }
  // It may be a rank of this launch, of those whose job has the same name.
  bool CanHave(const Process& process) const;
  // Another launch of that has no name either: who came may be of either.
  bool MayBeMixedWith(const Process& process) const;
  // … so nothing is told of this one any more.
  void Mix() { mixed_ = true; }
  // All ranks came and are gone, and all that they wrote was read.
  bool IsOver() const;
  // After Over(): gives back what its processes left.
  void Forget() {
    for (const auto& [rank, process] : processes_) process->Forget();
  }
  void Add(std::unique_ptr<Process> process);
  // Reads some of what is new, by turns of all ranks; true when there was something.
  bool Drain();
  // Some ranks had more than that.
  bool behind() const { return !behind_.empty(); }
  // What was seen is to be confirmed, or a rank has yet to come. Else looks may be rare: the end of
  // a rank is seen at AddEnds().
  bool Hurries() const;
  // Looks should come more often: a cache should hold the events that wait.
  bool Floods() const;
  void AddEnds(std::vector<pollfd>& items) const;
  // Who ended, who is stopped. `over`: the launchers are gone, so every process is.
  void LookAtProcesses(bool over);
  // Whether a look may find ranks stuck: all ranks are known and quiet, and something has changed
  // since the last look found nothing.
  bool WantsLook() const;
  // Every process of another watcher must have been looked at since the last call. True when ranks
  // were just proved to be stuck.
  bool LookForStandstill();
  // No rank has called anything for so many seconds, and that was not told yet. 0: never.
  bool IsSilent(double seconds) const;
  // None has, whatever was told.
  bool QuietFor(double seconds) const {
    return static_cast<double>(now_ns_() - last_event_ns_) >= seconds * 1e9;
  }
  // … as the last look confirmed: what NCCL's members have not answered is suspected. True when
  // that was asked now.
  bool LookForSilence(double seconds);
  // All is over. `all_told`: no watcher was lost before it told all.
  void Over(bool all_told);
  // Somebody else ends the ranks from now on: what follows proves nothing.
  void EndsAreNoNews() {
    ending_ = true;
    judge_.EndsAreNoNews();
  }
  // A rank has called MPI_Comm_spawn.
  bool Spawns() const { return judge_.history().spawns; }
  // In a row, that found a rank gone which had not come to MPI_Finalize's end; 0: none did.
  int LooksSinceEnd() const;
  // The same of another job's, before this look.
  void GoneElsewhere(int looks) { ends_.GoneElsewhere(looks); }
  // One was found gone in the last look for the first time.
  bool HasFreshEnd() const { return ends_.HasFresh(); }
  // Once a rank is found gone, those that were looked at before it are looked at again. So who is
  // not gone after this was alive when the others were gone.
  void LookAgain();
  std::vector<judge::Finding> Tell();
  // After a standstill: a line a rank that is stuck, where a finding does not name them all.
  std::vector<std::string> StuckRanks() const { return stuck_; }
  // … the ranks, and where they are; the first kMostStuck of many. `stacks`: of all of them.
  std::vector<verdict::RankOutcome> Hung(bool stacks);
  // "rank 0 is in MPI_Recv from rank 1, tag 7, at solver.c:31", of ranks that are in a call.
  std::vector<std::string> Whereabouts(Deadline deadline) const;
  void KillAll() {
    for (const auto& [rank, process] : processes_) process->Kill();
  }
  // The rank left in good order, as far as its events say.
  bool EndedWell(int rank) const;
  // From now on; before the first event. Of ranks of one host: they share a clock.
  void CountWaits();
  // Nothing where waits are not counted.
  std::optional<results::store::Watched> Waited(const report::Scale& scale);
  std::uint64_t events() const { return events_; }
  int size() const { return size_; }
  bool complete() const;
  const std::set<events::Call>& not_followed() const { return judge_.not_followed(); }

 private:
  struct Look {
    std::int64_t at_ns = 0;
    std::map<int, ProcessFacts> ranks;  // that are stuck
    bool soft = false;
    bool apart = false;
    bool SameEvents(const Look& other) const;
  };
  // `stopped`: now. `since_ns`: since the last look.
  void NoteStopped(int rank, bool stopped, std::int64_t since_ns);
  // By now for good: so many looks in a row found it so.
  bool IsGone(int rank, const ProcessFacts& facts, std::int64_t since_ns);
  std::string At(int rank, std::uint64_t site);
  std::string WithHosts(const std::string& text) const;
  Look LookNow(const judge::StuckRanks& stuck);
  bool Confirms(const Look& second) const;
  bool InGroups(const Look& look) const;
  // Whether the main threads of stuck ranks, whose other threads call, are in the library, too.
  bool MainThreadsWait(const Look& second);

  int size_;
  bool several_hosts_;
  std::function<std::int64_t()> now_ns_;
  judge::Judge judge_;
  std::unique_ptr<report::Waits> waits_;  // null: nobody asked
  std::map<int, std::unique_ptr<Process>> processes_;
  std::set<int> behind_;  // ranks of which not all was read
  RankEnds ends_;
  std::int64_t gone_ns_ = 0;                // when the first was found gone for good; 0: none was
  std::map<int, std::int64_t> stopped_ns_;  // so long in a row it was stopped, and somebody looked
  std::int64_t looked_ns_ = 0;
  Look first_;
  bool main_threads_wait_ = false;  // seen after first_
  std::vector<std::string> stuck_;
  std::vector<int> hung_ranks_;
  std::uint64_t events_ = 0;
  std::int64_t last_event_ns_ = 0;
  std::int64_t no_stacks_until_ns_ = 0;
  bool changed_ = true;
  std::uint64_t fresh_ = 0;            // events of the last Drain()
  std::uint64_t fresh_from_ring_ = 0;  // of these, those that took room
  bool ending_ = false;
  bool hung_ = false;
  std::uint64_t silent_since_ = 0;  // events, when the silence was told
  bool complete_ = true;
  bool mixed_ = false;
};

}  // namespace lockstep::watch::run
