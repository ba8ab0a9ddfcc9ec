// From what is known of every rank to a judgement: pure functions of the history.
#pragma once

#include <vector>

#include "core/base/clock.h"
#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict {

// Findings name ranks in the same position of one communicator with different operations (proved);
// the rank that exited, died, failed or is stopped (proved); ranks that wait for each other in
// operations of different communicators; the rank that has not entered what the others wait in;
// else a stall that all entered (suspected), where a rank asleep outside the library is named as
// culprit. Where the journals of a training program show why it came to that (uneven_inputs,
// one_sided_evaluation, one_sided_unused_parameters) that is the finding, and the general one its
// evidence. A rank that waits for a culprit is kHung; one that reported an error because of it is
// kFailed. Proved findings need no deadline. Linear in the events.
Judgement Judge(const std::vector<RankEvidence>& evidence, const Setting& setting);
Judgement Judge(const std::vector<RankEvidence>& evidence, double deadline_seconds);

// Whether it is proved that no rank can go on any more: then nobody needs to wait for a deadline.
// A finding of `judgement` is proved, and because of it every rank of `evidence` is gone, stopped
// or waits for ever. A rank that is on its way, and one that reported an error but still runs, may
// yet do something. Silence proves nothing: judge with an infinite deadline.
bool NobodyCanGoOn(const std::vector<RankEvidence>& evidence, const Judgement& judgement);

// Whether every rank that is stopped, or runs and does not idle, is silent beyond the deadline. As
// long as one is not, it may come: that others wait for it is held against nobody. One that is
// stopped may be continued. Where all are in a call or leave, time in which one was kept from a
// processor is none: what it was to do there holds up the others, or nobody.
bool AllSilent(const std::vector<RankEvidence>& evidence, double deadline_seconds);

// Whoever stopped a rank may continue it: one that is stopped, and silent for less than the
// deadline, counts as one that runs. What ended the others meanwhile is not its doing.
void ForgiveBriefStops(std::vector<RankEvidence>& evidence, double deadline_seconds);

// No rank did anything between two looks at all of them: what both saw was true of all ranks at one
// moment between the looks, although ranks are looked at one after the other.
bool SameMoment(const std::vector<RankEvidence>& first, const std::vector<RankEvidence>& second);

// The newest event of all journals, deaths included; 0: none.
Ticks NewestTicks(const std::vector<RankEvidence>& evidence);

}  // namespace lockstep::verdict
