// What was watched as the tables that results/store keeps. Pure: `locate` makes lines of addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "results/store/run.h"
#include "watch/report/waits.h"

namespace lockstep::watch::report {

struct Scale {
  std::uint64_t origin_ticks = 0;  // when watching began
  double ns_per_tick = 1;
};

// A rank's process, as the watcher knew it.
struct RankProcess {
  int pid = 0;
  bool complete = true;  // its events were read up to its end
};

// "solver.c:31" of an address in a rank's process; "": not known.
using Locate = std::function<std::string(int rank, std::uint64_t site)>;

// `processes`: by rank. Places of one rank that have the same line become one.
results::store::Watched Record(const Waits& waits, const Scale& scale,
                               const std::vector<RankProcess>& processes, const Locate& locate);

}  // namespace lockstep::watch::report
