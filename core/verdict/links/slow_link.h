// Links on which bytes take much longer than on most.
#pragma once

#include <string>
#include <vector>

#include "core/verdict/link_traffic.h"
#include "core/verdict/outcome.h"

namespace lockstep::verdict::links {

// Links on which bytes are on the way for much longer than on most: one finding slow_link, proved
// or suspected, or none. Needs watched connections and clocks of the ends that agree to a
// millisecond (one host, or PTP); of two ranks whose link is slow in both directions there is
// nothing to compare with, unless their kernels saw it better. What is lost often and sent again is
// slow, too.
std::vector<Finding> FindSlowLinks(const Ranks& evidence);
// Why a slow link may have gone unnoticed, or "": too few bytes were seen to pass a link, or they
// may have been on the way for long, for all that late looks tell.
std::string WhyNoneIsKnown(const Ranks& evidence);
// What FindSlowLinks is about, the slowest last.
std::vector<LinkTraffic> SlowLinks(const Ranks& evidence);

}  // namespace lockstep::verdict::links
