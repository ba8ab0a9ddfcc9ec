// A launch is the unit: what its samples share (placement, memory, a mode of the library) no
// sampling inside of it can see. So each launch gives one figure a case, and the interval is over
// launches.
#include "results/compare/over_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/compare/case_groups.h"

namespace lockstep::results::compare {
namespace {

CaseOverLaunches OverLaunches(const CaseGroup& group) {
  CaseOverLaunches one{group.program, group.name, group.backend, group.ranks};
  one.launches = group.base.figures.size();
  std::vector<double> medians;
  for (const CaseFigures* figures : group.base.figures) {
    if (std::isfinite(figures->median_ns)) medians.push_back(figures->median_ns);
    if (figures->verdict != verdict::Verdict::kPass && one.outcome == "pass") {
      one.outcome = figures->outcome;
    }
  }
  one.timed = medians.size();
  if (medians.empty()) return one;
  one.interval = stats::EstimateMedianOfIndependent(medians);
  const auto [lowest, highest] = std::minmax_element(medians.begin(), medians.end());
  one.lowest_ns = *lowest;
  one.highest_ns = *highest;
  return one;
}

std::size_t Count(std::span<const Launch> launches, verdict::Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(launches, verdict, &Launch::verdict));
}

const CaseOverLaunches* Widest(const std::vector<CaseOverLaunches>& cases) {
  const CaseOverLaunches* widest = nullptr;
  for (const CaseOverLaunches& one : cases) {
    if (one.timed == 0) continue;
    if (widest == nullptr ||
        one.interval.relative_half_width() > widest->interval.relative_half_width()) {
      widest = &one;
    }
  }
  return widest;
}

// "bench_allreduce and bench_barrier", in the order in which they first appear.
std::string ProgramsOf(std::span<const Launch> launches) {
  std::vector<std::string> programs;
  for (const Launch& launch : launches) {
    if (std::ranges::find(programs, launch.program) == programs.end()) {
      programs.push_back(launch.program);
    }
  }
  return fmt::format("{}", fmt::join(programs, " and "));
}

// "FAIL: 2 of 8 launches of bench_allreduce failed; the first: rank 1 is stopped"
std::string HeadlineOf(std::span<const Launch> launches, const LaunchSummary& summary,
                       std::size_t expected) {
  const std::string which = fmt::format("{} launches of {}", expected, ProgramsOf(launches));
  if (summary.exit_code == ExitCode::kPass) {
    const CaseOverLaunches* widest = Widest(summary.cases);
    if (widest == nullptr) return fmt::format("PASS: {}; none has a time", which);
    const double percent = 100 * widest->interval.relative_half_width();
    return fmt::format("PASS: {}; the median of each case is known to {:.{}f} % over launches",
                       which, percent, percent < 10 ? 1 : 0);
  }
  const bool failed = summary.exit_code == ExitCode::kFailed;
  const auto other = std::ranges::find_if(launches, [&](const Launch& launch) {
    return launch.verdict == (failed ? verdict::Verdict::kFail : verdict::Verdict::kUnknown);
  });
  if (other == launches.end()) {
    return fmt::format("INCONCLUSIVE: {} of {} left a file that can be read", launches.size(),
                       which);
  }
  return fmt::format("{}: {} of {} did not pass; the first: {}", failed ? "FAIL" : "INCONCLUSIVE",
                     launches.size() - Count(launches, verdict::Verdict::kPass), which,
                     other->outcome);
}

}  // namespace

LaunchSummary SummarizeLaunches(std::span<const Launch> launches, std::size_t expected) {
  LaunchSummary summary;
  const CaseGroups groups(launches, {}, "*", {});
  for (const CaseGroup& group : groups.groups()) summary.cases.push_back(OverLaunches(group));
  if (Count(launches, verdict::Verdict::kFail) > 0) {
    summary.exit_code = ExitCode::kFailed;
  } else if (Count(launches, verdict::Verdict::kPass) == expected) {
    summary.exit_code = ExitCode::kPass;
  }
  summary.headline = HeadlineOf(launches, summary, expected);
  return summary;
}

}  // namespace lockstep::results::compare
