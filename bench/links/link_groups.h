// Pairs of ranks, gathered to links between hosts or within one, and how they stand in a pass.
#ifndef LOCKSTEP_BENCH_LINKS_LINK_GROUPS_H_
#define LOCKSTEP_BENCH_LINKS_LINK_GROUPS_H_

#include <map>
#include <string>
#include <vector>

#include "bench/links/cases.h"
#include "bench/measure/sample_book.h"
#include "bench/plan/plan.h"
#include "core/stats/slow_pairs.h"
#include "results/store/run.h"

namespace lockstep::bench::links {

struct LinkSetting {
  std::vector<std::string> hosts;  // one a rank; equal: the same host
  // Also the pairs within a host are judged. Between processors of a host that would be wrong:
  // threads of one core are many times faster than others.
  bool judge_within_hosts = false;
};

// The figures of a pair of ranks, a median a round each, of the rounds that count: those in which
// neither waited for a processor so long that the link may look slow by that.
struct PairFigures {
  std::vector<double> latency_ns;
  std::vector<double> forward_ns;  // a message from the first to the second, and its answer
  std::vector<double> back_ns;
};
struct PairRounds : PairFigures {
  // Too few rounds count, so these are all: the link is at least as fast as they show.
  bool busy = false;
  PairFigures least = {};  // without all waits: the link is at most as fast as these show
};
using PairTable = std::map<stats::NodePair, PairRounds>;

// One part of a rank's iterations, a median a round. The first round only calibrates.
std::vector<double> RoundsOf(const measure::CaseBook& book, const plan::PlannedCase& planned,
                             int rank, std::size_t part, bool calibrates);

// What the first pass measured, or the second.
PairTable MeasuredPairs(const plan::Plan& plan, const measure::SampleBook& book, int repetition,
                        bool retest, double slow_factor);

// What is compared with each other: links between hosts, or between the ranks of one host.
struct LinkGroup {
  bool of_hosts = true;
  std::vector<std::string> names;       // of the nodes
  std::vector<std::vector<int>> ranks;  // of each node
  std::map<stats::NodePair, std::vector<stats::NodePair>>
      members;  // pairs of nodes: pairs of ranks
};
std::vector<LinkGroup> LinkGroupsOf(const PairTable& table, const LinkSetting& setting);

// How a pair of nodes stands in one pass; forward: from the lower number to the higher.
struct PairStatus {
  double latency_ratio = 1;  // over the usual one
  double forward_ratio = 1;
  double back_ratio = 1;
  double latency_ns = 0;
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
};
LinkVerdicts JudgeTwice(const LinkGroup& group, const PairTable& first, const PairTable& second,
                        double slow_factor);

}  // namespace lockstep::bench::links

#endif  // LOCKSTEP_BENCH_LINKS_LINK_GROUPS_H_
