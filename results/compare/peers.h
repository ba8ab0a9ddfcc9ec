// Machines that measure the same cases, beside each other. Pure.
#pragma once

#include <span>
#include <vector>

#include "results/compare/trend.h"

namespace lockstep::results::compare {

// By the newest level of every case that at least kFewestMachines machines measure. Slow: the
// excess, a median over cases, is above `peer_min` and above four standard deviations of the other
// machines' excesses (from their median absolute deviation), so that a fleet of uneven machines
// has no slow one. Or so in a quarter of its cases, two at least, each by its own limit, which
// is at least twice `peer_min`: a link that lost half of its lanes is seen in large messages only.
std::vector<Peer> ComparePeers(std::span<const Series> series, double peer_min);

}  // namespace lockstep::results::compare
