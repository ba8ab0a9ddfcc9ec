// How links stand in one pass, and what two passes prove.
#pragma once

#include <map>
#include <vector>

#include "bench/links/link_groups.h"
#include "core/stats/slow_pairs.h"
#include "results/store/run.h"

namespace lockstep::bench::links {

// How a pair of nodes stands in one pass; forward: from the lower number to the higher.
struct PairStatus {
  double latency_ratio = 1;  // over the usual one
  double forward_ratio = 1;
  double back_ratio = 1;
  double latency_ns = 0;
  bool at_most = false;  // a busy link's: it is at most as fast as these figures say
  bool slow_latency = false;
  bool slow_forward = false;
  bool slow_back = false;
  bool slow() const { return slow_latency || slow_forward || slow_back; }
};
struct PairStatuses {
  double usual_latency_ns = results::store::LinkPair::kUnknown;
  double usual_sent_ns = results::store::LinkPair::kUnknown;
  std::map<stats::NodePair, PairStatus> standings;
  std::vector<stats::NodePair> tested;  // known to be slow, or not to be
  std::vector<stats::NodePair> slow;
  std::vector<stats::NodePair> busy;  // too few of their rounds count to call them usual
};
PairStatuses JudgeOnce(const LinkGroup& group, const PairTable& table, double slow_factor);
// What the second pass measures, one by one. Where some were busy in the first one these are all,
// unless they are many: alone on their hosts ranks wait less for a processor.
std::vector<stats::NodePair> RetestsOf(const PairStatuses& pass);

struct LinkVerdicts {
  PairStatuses first;
  PairStatuses second;
  // Slow in both; or busy in the first, and slow in both halves of the second.
  std::vector<stats::NodePair> confirmed;
  std::vector<stats::NodePair>
      undecided;  // too busy to be called good, or slow once beside busy ones
  stats::Blame blame;
  // Otherwise nothing is proved: who waits for a processor is as slow as who has a slow link.
  bool waits_known = true;
};
LinkVerdicts JudgeTwice(const LinkGroup& group, const PairTable& first, const PairTable& second,
                        double slow_factor);

}  // namespace lockstep::bench::links
