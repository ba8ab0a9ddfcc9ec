// Pairs of ranks, gathered to links between hosts or within one, with what a pass measured of them.
#pragma once

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
  bool waits_known = true;  // the kernels of both ends tell what their ranks waited
  // The link is at most as fast as these show: without all waits, but no faster than its kernel's
  // own round trips.
  PairFigures least = {};
  // Of all rounds the fastest iteration: the link is at least as fast as the best of them. Rounds
  // count only where what a rank waited is little of what they took, so those that count are rather
  // the slow ones.
  PairFigures seen = {};
  // What both kernels sent, and of that lost, a number a round.
  std::vector<double> segments = {};
  std::vector<double> lost = {};
};
using PairTable = std::map<stats::NodePair, PairRounds>;

// Of which a median says something, when others do not count.
inline constexpr std::size_t kFewestRounds = 4;

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

}  // namespace lockstep::bench::links
