// What the sockets of the ranks add to a finding: the link that it is about.
#pragma once

#include <vector>

#include "core/verdict/link_traffic.h"
#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict {

// Adds to a finding of silence the links on which bytes do not arrive, and makes their ends the
// culprits; nothing where the sockets show none.
void NameStalledLinks(const Situation& situation, Finding& finding);
// Adds to a finding of reported errors the link that broke (FindBrokenLink).
void NameBrokenLink(const Situation& situation, Finding& finding);
// The rank that several links have in common, else the ends of all of them.
std::vector<int> CommonEnds(const std::vector<LinkTraffic>& links);
// Both directions of the links that broke (FindBrokenLink, link_traffic.h).
std::vector<LinkTraffic> FindBrokenLinks(const Ranks& evidence);

}  // namespace lockstep::verdict
