// The finders behind Judge, one a kind of cause. Each is linear in the journals.
#ifndef LOCKSTEP_CORE_VERDICT_FINDINGS_H_
#define LOCKSTEP_CORE_VERDICT_FINDINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/verdict/judge.h"
#include "core/verdict/links.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict {

// The signals by which a process ends itself: SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL …
bool EndedBySelf(int signal);
// It, or its library, reported an error: alone, or before it exited because of that.
bool Failed(const RankView& view);
// It runs, owes progress, and nothing but silence can be held against it.
bool OwesProgress(const RankView& view);
// It left in order: exit code 0, announced, with no collective open.
bool FinishedInOrder(const RankView& view);
// Exited, ended by a signal, stopped or failed: it will do nothing more.
bool IsGone(const RankView& view);
// The first collective that reported an error; what was queued behind it never ran. What comes when
// the rank already leaves is a consequence of that. nullptr: none did.
const journal::JournalEvent* FirstErrorOf(const RankView& view);
// "exited with code 9", "is stopped by SIGSTOP".
std::string FateOf(const RankView& view);

// Who can never go on. Pure consequence of what is proved: nobody's silence matters.
struct Stuck {
  static constexpr std::int32_t kNobody = -1;
  // All by index of the views.
  std::vector<bool> ranks;              // waits for ever
  std::vector<std::int32_t> waits_for;  // whom, of those that will not come
  std::vector<std::int32_t> root;       // who is gone at the end of that chain, or kNobody
  // Views that wait for each other in a ring, each for the next one, over more than one
  // communicator; empty: there is none.
  std::vector<std::size_t> cycle;
};
// Ranks of a mismatch that stops them are stuck. `one_stream`: as in Setting.
Stuck FindStuck(const Situation& situation, const std::vector<Mismatch>& mismatches,
                bool one_stream);

// By view: it finished in order, and what others call it never called; not where that is what most
// ranks of the communicator did.
std::vector<bool> FindMissed(const Situation& situation);
// collective_mismatch: a minority calls what most ranks of the communicator, which finished in
// order, never called. Proved.
std::vector<Finding> FindSurplus(const Situation& situation);
// rank_crashed, rank_killed, rank_stopped, rank_exited: proved. A rank that finished in order is a
// culprit only if another waits for it.
std::vector<Finding> FindDepartures(const Situation& situation, const Stuck& stuck);
// rank_failed, or init_failure where it was while connecting: proved by what the ranks themselves
// reported. When all that they report is that somebody did not come, who did not is suspected.
std::vector<Finding> FindErrors(const Situation& situation, const Stuck& stuck);
// collective_mismatch and the like: proved.
std::vector<Finding> DescribeMismatches(const Situation& situation,
                                        const std::vector<Mismatch>& mismatches);
// Whether what ended the ranks (`end`, found without it) may be a consequence of a mismatch that
// held nobody. What only spoils data, and left all calls behind it where they belong, ends no rank.
bool MayFollow(const Situation& situation, const Mismatch& mismatch, const Finding& end);
// Why it came to what `general` (the first finding) says, if that is the making of a communicator
// in which not all ranks of its parent take part: init_failure, as certain as `general` is. The
// culprits are who did not take part, unless those are most.
std::optional<Finding> ExplainMaking(const Situation& situation, const Finding& general);
// order_inversion: proved where a rank that waits can enter nothing else; otherwise suspected when
// all of the ring are silent beyond the deadline.
std::vector<Finding> FindInversion(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches);
// Adds to a finding of silence the links on which bytes do not arrive, and makes their ends the
// culprits; nothing where the sockets show none.
void NameStalledLinks(const Situation& situation, Finding& finding);
// Adds to a finding of reported errors the link that broke (FindBrokenLink).
void NameBrokenLink(const Situation& situation, Finding& finding);
// The rank that several links have in common, else the ends of all of them.
std::vector<int> CommonEnds(const std::vector<LinkTraffic>& links);
// What FindSlowLinks (links.h) is about, the slowest last.
std::vector<LinkTraffic> SlowLinks(const Ranks& evidence);
// Both directions of the links that broke (FindBrokenLink, links.h).
std::vector<LinkTraffic> FindBrokenLinks(const Ranks& evidence);
// data_corruption: proved by a check of the results.
std::vector<Finding> FindWrongData(const Situation& situation);
// unknown: agents that do not answer.
std::vector<Finding> FindLost(const Situation& situation);
// rank_busy, transport_stall, init_failure, unknown: suspected, all evidence is silence beyond the
// deadline.
std::vector<Finding> FindSilence(const Situation& situation);

// Why a training program came to what `general` (the first finding) says, if the journals show it:
// uneven_inputs, one_sided_evaluation, one_sided_unused_parameters; as certain as `general` is.
std::optional<Finding> ExplainTraining(const Situation& situation,
                                       const std::vector<Mismatch>& mismatches,
                                       const Finding& general);

}  // namespace lockstep::verdict

#endif  // LOCKSTEP_CORE_VERDICT_FINDINGS_H_
