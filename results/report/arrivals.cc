// Who came late, and whether the clocks can tell.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "results/report/figures.h"
#include "results/report/grid.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

constexpr std::size_t kMostHosts = 8;  // in one line; the file has all

std::string ClockText(const store::HostClock& clock) {
  if (clock.state == "unknown") return clock.host + " is not known (its agent did not answer)";
  if (clock.state == "inconsistent") {
    return clock.host + " was set, or stood still: its moments do not compare with others";
  }
  return fmt::format("{} {} s, drift {:+.1f} ppm, error {}", clock.host,
                     FormatChange(clock.day_offset_ns * 1e-9, clock.error_ns * 1e-9),
                     clock.drift_ppm, FormatDuration(clock.error_ns));
}

// What is smaller than the error of the clocks is no figure: at most, it is this.
std::string FigureText(double ns, const store::Arrivals& arrivals) {
  if (!std::isfinite(arrivals.clock_error_ns)) return "-";
  if (std::abs(ns) >= arrivals.clock_error_ns) return FormatDuration(ns);
  return "< " + FormatDuration(ns + arrivals.clock_error_ns);
}

std::string LastText(const store::Arrivals& arrivals) {
  if (arrivals.skew_ns < arrivals.clock_error_ns) return "-";
  return fmt::format("{} ({:.0f} %)", arrivals.last_rank, 100 * arrivals.last_share);
}

}  // namespace

std::string FormatClocks(const store::Run& run) {
  if (run.clocks.size() < 2) return "";
  std::vector<const store::HostClock*> others;
  for (std::size_t i = 1; i < run.clocks.size(); ++i) others.push_back(&run.clocks[i]);
  std::ranges::stable_sort(others, std::ranges::greater(), &store::HostClock::error_ns);
  const std::size_t shown = std::min(others.size(), kMostHosts);
  std::string text = fmt::format("clocks beside {}'s:", run.clocks.front().host);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ";", ClockText(*others[i]));
  }
  if (shown < others.size()) {
    text += fmt::format("; {} more, error at most {}", others.size() - shown,
                        FormatDuration(others[shown]->error_ns));
  }
  return text + "\n";
}

std::string FormatArrivals(const store::Run& run) {
  using enum Grid::Align;
  Grid grid;
  grid.AddColumn("case", kLeft);
  grid.AddColumns(kRight, {"median", "arrival skew", "transfer", "clock error"});
  grid.AddColumn("last rank", kLeft);
  for (const store::CaseRecord& record : run.cases) {
    if (!record.arrivals) continue;
    const store::Arrivals& arrivals = *record.arrivals;
    grid.AddRow({record.name, FormatDuration(record.summary.median_ns),
                 FigureText(arrivals.skew_ns, arrivals), FigureText(arrivals.transfer_ns, arrivals),
                 arrivals.clock_error_ns == 0 ? "0" : FormatDuration(arrivals.clock_error_ns),
                 LastText(arrivals)});
  }
  if (grid.empty()) {
    return "Arrivals: no case was completed by two ranks or more, or the file is of an older "
           "version.\n";
  }
  std::string text = "Arrivals\n" + grid.Format();
  text +=
      "arrival skew: last entry - first entry; transfer: last exit - last entry (medians over "
      "iterations; of loads, over the means of visits)\n";
  if (run.clocks.size() == 1) {
    text += "all ranks are on one host, whose clock they share: offset 0, error 0\n";
  } else {
    text += "< x: less than the clocks of the hosts can tell, at most x\n";
  }
  return text;
}

}  // namespace lockstep::results::report
