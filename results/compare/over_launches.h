// The same cases in several launches: how well their medians are known. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/stats/stats.h"
#include "results/compare/figures.h"

namespace lockstep::results::compare {

struct CaseOverLaunches {
  std::string program, name, backend;
  int ranks = 0;
  std::size_t launches = 0;  // that have the case
  std::size_t timed = 0;     // with a time of it
  // Of the launches' medians, ns, at 95 %: a launch counts once, whatever it measured inside.
  stats::MedianInterval interval = {};  // without meaning when none is timed
  double lowest_ns = 0, highest_ns = 0;
  std::string outcome = "pass";  // or the first other one
};

struct LaunchSummary {
  std::string headline;
  std::vector<CaseOverLaunches> cases;           // in the order in which they first appear
  ExitCode exit_code = ExitCode::kInconclusive;  // 0: all passed, 1: a launch failed, else 3
};

// `expected`: how many launches were asked for.
LaunchSummary SummarizeLaunches(std::span<const Launch> launches, std::size_t expected);

}  // namespace lockstep::results::compare
