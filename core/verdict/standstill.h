// Whether it is proved that no rank can go on any more: then nobody needs to wait for a deadline.
#pragma once

#include <vector>

#include "core/base/clock.h"
#include "core/verdict/evidence.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict {

// A finding of `judgement` is proved, and because of it every rank of `evidence` is gone, stopped
// or waits for ever. A rank that is on its way, and one that reported an error but still runs, may
// yet do something. Silence proves nothing: judge with an infinite deadline.
bool NobodyCanGoOn(const std::vector<RankEvidence>& evidence, const Judgement& judgement);

// No rank did anything between two looks at all of them: what both saw was true of all ranks at one
// moment between the looks, although ranks are looked at one after the other.
bool SameMoment(const std::vector<RankEvidence>& first, const std::vector<RankEvidence>& second);

// The newest event of all journals, deaths included; 0: none.
Ticks NewestTicks(const std::vector<RankEvidence>& evidence);

}  // namespace lockstep::verdict
