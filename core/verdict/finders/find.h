// What finds one kind of cause each. Explanations of a general finding register themselves
// (explanation.h).
#pragma once

#include <vector>

#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"
#include "core/verdict/stuck.h"

namespace lockstep::verdict::finders {

// collective_mismatch and the like: proved.
std::vector<Finding> DescribeMismatches(const Situation& situation,
                                        const std::vector<Mismatch>& mismatches);

// By view: it finished in order, and what others call it never called; not where that is what most
// ranks of the communicator did.
std::vector<bool> FindMissed(const Situation& situation, const Stuck& stuck);
// collective_mismatch: a minority calls what most ranks of the communicator never call. Those
// finished in order, or wait for ever behind a caller while another one finished in order. Proved.
std::vector<Finding> FindSurplus(const Situation& situation, const Stuck& stuck);

// rank_crashed, rank_killed, rank_stopped, rank_exited: proved. A rank that finished in order is a
// culprit only if another waits for it.
std::vector<Finding> FindDepartures(const Situation& situation, const Stuck& stuck);
// rank_failed, or init_failure where it was while connecting: proved by what the ranks themselves
// reported. When all that they report is that somebody did not come, who did not is suspected.
std::vector<Finding> FindErrors(const Situation& situation, const Stuck& stuck);

// order_inversion: proved where a rank that waits can enter nothing else; otherwise suspected when
// all of the ring are silent beyond the deadline.
std::vector<Finding> FindInversion(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches);

// rank_busy, transport_stall, init_failure, unknown: suspected, all evidence is silence beyond the
// deadline.
std::vector<Finding> FindSilence(const Situation& situation);

// unknown: agents that do not answer.
std::vector<Finding> FindLost(const Situation& situation);

// data_corruption: proved by a check of the results.
std::vector<Finding> FindWrongData(const Situation& situation);

// collective_mismatch: all members of a communicator ended in order, and did not make as many calls
// on it. Proved. Those that may explain wrong data of a member, or all others.
std::vector<Finding> FindUnequalCalls(const Situation& situation, bool with_wrong_data);

// Whether what ended the ranks (`end`, found without it) may be a consequence of a mismatch that
// held nobody. What only spoils data, and left all calls behind it where they belong, ends no rank.
bool MayFollow(const Situation& situation, const Mismatch& mismatch, const Finding& end);

// Ranks whose own work between collectives takes more than twice that of the median rank and
// lengthens all ranks' period by a fifth or more. No failure, and never a hang: such a rank
// progresses. Counts ticks of one rank only, so that clocks need not agree.
std::vector<Finding> FindSlowRanks(const std::vector<RankEvidence>& evidence);

}  // namespace lockstep::verdict::finders
