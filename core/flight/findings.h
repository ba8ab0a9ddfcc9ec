// What is found in dumps beside what Judge finds, and Judge's findings in PyTorch's words.
#pragma once

#include <optional>
#include <vector>

#include "core/flight/standing.h"
#include "core/verdict/outcome.h"

namespace lockstep::flight {

// A suspicion of Judge (rank_busy, unknown, transport_stall, order_inversion) with the calls and
// the lines of the program; nothing for one that dumps cannot support.
std::optional<verdict::Finding> Reworded(const FlightView& view, const verdict::Finding& finding);

// rank_lost: suspected where the ranks with dumps wait in a call that all of them entered;
// otherwise unknown. Nothing when no dump is missing.
std::vector<verdict::Finding> FindRanksWithoutDump(const FlightView& view);

// Sends and receives that wait: rank_busy for the rank at the end of the chain, order_inversion for
// a ring, count_mismatch for sizes that differ. Suspected.
std::vector<verdict::Finding> FindWaitingMessages(const FlightView& view);

// unknown: calls on groups of which the dumps do not say who belongs to them.
std::vector<verdict::Finding> FindUnknownGroups(const FlightView& view);

}  // namespace lockstep::flight
