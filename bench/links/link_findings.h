// What is said of slow links and hosts, and of links that stall.
#pragma once

#include <string>
#include <vector>

#include "bench/links/link_groups.h"
#include "bench/links/link_verdicts.h"
#include "core/verdict/outcome.h"
#include "results/store/run.h"

namespace lockstep::bench::links {

// A link that is to blame. `bytes` of the messages that tell the bandwidth.
verdict::Finding SlowLink(const LinkGroup& group, const LinkVerdicts& verdicts,
                          const stats::NodePair& pair, double bytes);
// A node that is to blame: slow_host, or slow_rank within a host.
verdict::Finding SlowNode(const LinkGroup& group, const LinkVerdicts& verdicts, int node,
                          double bytes);

// Adds to the findings of an interruption which links had a message under way: the journals of the
// lifetime that it ended say so.
void NameOpenLinks(const std::vector<results::store::RankHistory>& history, int lifetime,
                   const std::vector<std::string>& hosts, verdict::Judgement& judgement);

}  // namespace lockstep::bench::links
