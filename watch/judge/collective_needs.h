// What a rank in a collective needs of other ranks.
#pragma once

#include <vector>

#include "watch/judge/history.h"
#include "watch/judge/wait_graph.h"

namespace lockstep::watch::judge {

// `place`: of that call of the rank. Nothing where it needs nobody, or where that is not known.
std::vector<Need> NeedsOfCollective(const History& history, int rank, const Event& event,
                                    const Place& place);

}  // namespace lockstep::watch::judge
