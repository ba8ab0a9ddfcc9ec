// The lines below a table. They explain only what the table shows. A floor that could not be
// measured has its reason here: the figures of the host, and where its ranks ran, are in the run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

#include "core/base/units.h"
#include "results/report/figures.h"
#include "results/report/sections.h"

namespace lockstep::results::report {
namespace {

bool IsCollective(const store::CaseRecord& record) { return record.parts.empty(); }

// Iterations of loads are not alike: a visit of a case counts by its mean.
bool CountsByMean(const store::CaseRecord& record) {
  return std::ranges::any_of(record.parts,
                             [](const store::Part& part) { return part.over == "mean"; });
}

// The factors of the collectives that the run has, with their formulas.
// Source: NVIDIA/nccl-tests doc/PERFORMANCE.md.
std::string BusFactors(const store::Run& run) {
  std::set<std::string> factors;
  for (const store::CaseRecord& record : run.cases) {
    if (!IsCollective(record)) continue;
    for (const collective::Operation& operation : record.operations) {
      const std::string name(collective::NameOf(operation.collective));
      switch (operation.collective) {
        case collective::Collective::kAllReduce:
          factors.insert("2(n-1)/n (" + name + ")");
          break;
        case collective::Collective::kAllGather:
        case collective::Collective::kReduceScatter:
          factors.insert("(n-1)/n (" + name + ")");
          break;
        case collective::Collective::kBarrier:
          break;
        default:
          factors.insert("1 (" + name + ")");
      }
    }
  }
  return fmt::format("{}", fmt::join(factors, ", "));
}

double FloorFigure(const store::Run& run, std::string_view name) {
  for (const auto& [figure, value] : run.floors) {
    if (figure == name) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// "4 ranks on 2 processors" of the first rank's host, when some share one; else "".
std::string Crowd(const store::Run& run) {
  const std::string host = ValueOf(run.environment, "ranks/0/boot_id");
  std::set<std::string> processors;
  std::size_t ranks = 0;
  for (int rank = 0;; ++rank) {
    const std::string boot = ValueOf(run.environment, fmt::format("ranks/{}/boot_id", rank));
    if (boot.empty()) break;
    if (boot != host) continue;
    ++ranks;
    const std::string cpus = ValueOf(run.environment, fmt::format("ranks/{}/cpus", rank)) + ",";
    for (std::size_t begin = 0, end; (end = cpus.find(',', begin)) != std::string::npos;
         begin = end + 1) {
      if (end > begin) processors.insert(cpus.substr(begin, end - begin));
    }
  }
  if (processors.empty() || processors.size() >= ranks) return "";
  return fmt::format("{} ranks on {} processor{}", ranks, processors.size(),
                     processors.size() == 1 ? "" : "s");
}

// Why no case has a limit.
std::string NoLimit(const store::Run& run) {
  const store::CaseRecord& first = run.cases.front();
  if (first.device != "host") return "the data is not in the host's memory";
  if (first.backend == "null") return "the backend null moves no data";
  if (first.ranks < 2) return "one rank has nobody to wait for";
  const std::string crowd = Crowd(run);
  return crowd.empty() ? "the host was too busy to measure its rates" : crowd + ", so no floors";
}

// Cache lines took different times while the run lasted. Why is not known: ranks that are not bound
// move, a virtual machine moves its processors, or others use them.
std::string Varied(const store::Run& run) {
  const double least = FloorFigure(run, "line_round_trip_least_ns");
  const double most = FloorFigure(run, "line_round_trip_most_ns");
  if (!std::isfinite(least))
    return "  (cache lines took different times meanwhile: limits are rough)\n";
  return fmt::format(
      "  (a cache line took {:.0f} to {:.0f} ns meanwhile: each round has its own floor)\n", least,
      most);
}

std::string Limit(const store::Run& run) {
  const bool any = std::any_of(run.cases.begin(), run.cases.end(), [](const auto& record) {
    return IsCollective(record) && record.summary.floor_ns > 0;
  });
  if (!any) return fmt::format("limit: floor / median; none: {}\n", NoLimit(run));
  std::string rates, missing;
  const auto add = [&](const std::string& what, double value, const std::string& text) {
    std::string& list = std::isfinite(value) ? rates : missing;
    list += (list.empty() ? "" : ", ") + what + (std::isfinite(value) ? " " + text : "");
  };
  const double copy = FloorFigure(run, "copy_gbps_together");
  const double sum = FloorFigure(run, "reduce_gbps_together");
  const double trip = FloorFigure(run, "line_round_trip_ns");
  add("copy", copy, BandwidthText(copy) + " GB/s");
  add("sum", sum, BandwidthText(sum) + " GB/s");
  add("cache line", trip, FormatDuration(trip));
  std::string text =
      fmt::format("limit: floor / median; floor: {}\n", rates.empty() ? "of smaller data" : rates);
  if (!missing.empty()) {
    const std::string crowd = Crowd(run);
    text += fmt::format("  (not measured: {}: {})\n", missing,
                        crowd.empty() ? "the host was too busy" : crowd);
  }
  if (const double handover = FloorFigure(run, "handover_gbps_in_cache"); handover > 0) {
    text += fmt::format("  (between processors {} GB/s, of 64 KiB)\n", BandwidthText(handover));
  }
  if (FloorFigure(run, "placement_changed") > 0) text += Varied(run);
  return text;
}

std::string HostFigures(const store::Run& run) {
  if (run.floors.empty()) return "";
  std::string text = "Floors and clock, measured in this run:";
  std::size_t column = text.size();
  for (const auto& [name, value] : run.floors) {
    const bool last = &name == &run.floors.back().first;
    const std::string item = fmt::format(" {} {}{}", name, FormatFigure(value), last ? "" : ",");
    if (column + item.size() > kNarrow) {
      text += "\n ";
      column = 1;
    }
    text += item;
    column += item.size();
  }
  return text + "\n";
}

// What the interval of a run's rounds does not hold: what changes from sweep to sweep, which the
// run allows for, and from launch to launch.
std::string BesideTheInterval(const store::Run& run) {
  for (const store::CaseRecord& record : run.cases) {
    const store::Summary& s = record.summary;
    const double stated = s.interval_high_ns - s.median_ns;
    const double rounds = s.rounds_high_ns - s.median_ns;
    if (!std::isfinite(stated) || !std::isfinite(rounds) || !(s.median_ns > 0)) continue;
    const double drift = std::sqrt(std::max(0.0, stated * stated - rounds * rounds)) / s.median_ns;
    return fmt::format(
        "  not in +-: sweeps differ by {} % (--drift), launches by more: lockstep run\n",
        PercentText(100 * drift));
  }
  return "";
}

}  // namespace

std::string FormatLegend(const store::Run& run, Columns columns) {
  const bool all = columns == Columns::kAll;
  const bool collectives = std::any_of(run.cases.begin(), run.cases.end(), IsCollective);
  std::string text = fmt::format(
      "\n{}: of the slowest rank, over {}; +-: half its 95 % interval\n{}measured: precise "
      "when the rounds agree to --precision\n",
      collectives ? "median" : "step",
      std::ranges::any_of(run.cases, CountsByMean) ? "means of visits" : "iterations",
      BesideTheInterval(run));
  if (const std::string factors = BusFactors(run); !factors.empty()) {
    text += fmt::format("{}busbw: bytes / median x f for n ranks, f = {}\n",
                        all ? "algbw: bytes / median; " : "", factors);
  }
  text += StepLegend(run, columns);
  if (collectives) text += Limit(run);
  if (collectives && all) {
    text += "line: a cache line there and back, before the rounds; least-most: it varied\n";
  }
  return all ? text + HostFigures(run) : text + "All columns: --wide\n";
}

}  // namespace lockstep::results::report
