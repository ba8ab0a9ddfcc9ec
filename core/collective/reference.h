// What a collective gives, computed the plain way. Slow; for tests and contract suites.
#pragma once

#include <vector>

#include "core/collective/collective.h"

namespace lockstep::collective {

// Writes to `recv` what `rank` receives when rank r sends `sends[r]` (SendBytes each; those that
// are not read may be nullptr). Reductions go through `sends` from first to last, each step rounded
// to the type (floats of less than 32 bits: through float); integers wrap; min and max keep a NaN
// of the first rank and ignore a later one. Nothing is written where the operation writes nothing:
// barrier, send, and reduce on other ranks than the root. recv gives what the peer (operation.root)
// sends. `recv` must not overlap any of `sends`.
void ReferenceResult(const Operation& operation, int world_size,
                     const std::vector<const void*>& sends, int rank, void* recv);

}  // namespace lockstep::collective
