// How ranks end, and which of them is to be blamed. Looks in, ends out: no clock, no process.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "watch/judge/judge.h"
#include "watch/run/process.h"

namespace lockstep::watch::run {

class RankEnds {
 public:
  struct Told {
    int rank = 0;
    judge::End how = judge::End::kDied;
    int code = 0;
    bool first = true;       // as the judge has it
    bool was_ended = false;  // by a process of the command: what follows is that one's doing
  };

  // `several_hosts`: news of another host may be a look late.
  explicit RankEnds(bool several_hosts) : several_hosts_(several_hosts) {}

  // A look at a rank. `gone`: it is, and nothing of it was missed.
  void Note(int rank, const ProcessFacts& facts, bool gone);
  // Looks in a row that found the rank gone.
  int LooksOf(int rank) const;
  // A rank's last look found it gone for the first time.
  bool HasFresh() const;
  bool HasGone() const;
  // Looks in a row that found a rank of another job gone.
  void GoneElsewhere(int looks) { gone_elsewhere_ = looks; }
  // Of ranks that are gone, and read to their end: what is known by now. `leaves`: one has said
  // that it exits, and is not gone yet. `over`: all ranks are gone, and nobody is waited for.
  std::vector<Told> Tell(const std::map<int, ProcessFacts>& ends, bool leaves, bool over) const;

 private:
  // Somebody of the command had told ranks to end before this one did.
  bool WasEnded(const ProcessFacts& facts) const;
  bool DiedFirst(int rank) const;

  bool several_hosts_;
  std::map<int, int> gone_;        // looks in a row that found the process gone
  int gone_elsewhere_ = 0;         // the same, of another job's rank
  std::set<int> exited_;           // of these, with code 0
  std::uint64_t ended_ticks_ = 0;  // when ranks were first told to end; 0: none was
};

}  // namespace lockstep::watch::run
