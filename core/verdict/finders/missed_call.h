// The call that ranks missed first, where others wait for them in a later one.
#pragma once

#include "core/verdict/rank_view.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// The earliest call of the group that none of the `missing` ranks has entered, as the first of
// the `waiting` has it; `operation` where that is not known. A library may let the others go on
// without them: a root leaves a broadcast as soon as its data is on the way.
const JournalEvent& FirstMissed(const Situation& situation, int group, const Views& missing,
                                const Views& waiting, const JournalEvent& operation);

}  // namespace lockstep::verdict::finders
