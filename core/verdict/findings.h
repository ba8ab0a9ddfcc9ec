// The finders behind Judge, one a kind of cause. Each is linear in the journals.
#ifndef LOCKSTEP_CORE_VERDICT_FINDINGS_H_
#define LOCKSTEP_CORE_VERDICT_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "core/verdict/rank_view.h"

namespace lockstep {

struct Situation {
  std::vector<RankView> views;
  double deadline_seconds = 0;

  bool overdue(const RankView& view) const {
    return view.evidence->seconds_silent >= deadline_seconds;
  }
};

// The signals by which a process ends itself: SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL …
bool EndedBySelf(int signal);
// It, or its library, reported an error: alone, or before it exited because of that.
bool Failed(const RankView& view);
// It runs, owes progress, and nothing but silence can be held against it.
bool OwesProgress(const RankView& view);
// It left in order: exit code 0, announced, with no collective open.
bool FinishedInOrder(const RankView& view);

// The rank because of which others can't go on: of those that are gone, stopped or failed,
// the one that the fewest operations of the world can do without.
struct Blocker {
  int rank = 0;
  std::uint64_t first_missed = 0;  // operations of the world from here on need it
  std::string fate;                // "which exited with code 9"
};
std::optional<Blocker> FindBlocker(const Situation& situation);
// True when the rank waits in an operation of the world that needs the blocker.
bool Waits(const RankView& view, const Blocker& blocker);

// rank_crashed, rank_killed, rank_stopped, rank_exited: proved. A rank that finished in order is a
// culprit only if another waits for it.
std::vector<Finding> FindDepartures(const Situation& situation,
                                    const std::optional<Blocker>& blocker);
// rank_failed: proved by what the ranks themselves reported.
std::vector<Finding> FindErrors(const Situation& situation, const std::optional<Blocker>& blocker);
// collective_mismatch and the like: different operations in one position of the world; proved.
std::vector<Finding> FindMismatch(const Situation& situation);
// unknown: agents that do not answer.
std::vector<Finding> FindLost(const Situation& situation);
// rank_busy, transport_stall, init_failure, unknown: suspected, all evidence is silence beyond the
// deadline.
std::vector<Finding> FindSilence(const Situation& situation);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_VERDICT_FINDINGS_H_
