// Figures as every report writes them: digits by size, and "-" for what is not a number. A line
// that a report prints has no control characters, since texts come from files.
#include "results/report/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/units.h"

namespace lockstep::results::report {

std::string DurationText(double ns) { return std::isfinite(ns) ? FormatDuration(ns) : "-"; }

TimeUnit TimeUnitOf(const store::Run& run) {
  double least = std::numeric_limits<double>::infinity();
  for (const store::CaseRecord& record : run.cases) {
    const store::Summary& summary = record.summary;
    if (summary.iterations > 0 && summary.median_ns > 0) least = std::min(least, summary.median_ns);
  }
  if (!std::isfinite(least)) return {"us", 1e3};
  return least >= 1e9   ? TimeUnit{"s", 1e9}
         : least >= 1e5 ? TimeUnit{"ms", 1e6}
                        : TimeUnit{"us", 1e3};
}

std::string TimeText(double ns, const TimeUnit& unit) {
  if (!std::isfinite(ns)) return "-";
  const double value = ns / unit.ns;
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string BandwidthText(double gbps) {
  if (!std::isfinite(gbps) || gbps <= 0) return "-";
  const int decimals = gbps >= 99.95 ? 0 : gbps >= 9.995 ? 1 : gbps >= 0.9995 ? 2 : 3;
  return fmt::format("{:.{}f}", gbps, decimals);
}

std::string PercentText(double percent) {
  if (!std::isfinite(percent)) return "-";
  return fmt::format("{:.{}f}", percent, percent >= 9.95 ? 0 : 1);
}

std::string PartText(double value, const std::string& units, const TimeUnit& unit) {
  if (!std::isfinite(value)) return "-";
  if (units == "ns") return TimeText(value, unit);
  if (units.empty()) return fmt::format("{:.2f}", value);
  return fmt::format("{:.4g} {}", value, units);
}

std::string PrecisionText(const store::Summary& summary) {
  if (!(summary.median_ns > 0)) return "-";
  const double rounds = summary.rounds_high_ns - summary.rounds_low_ns;
  const double stated = summary.interval_high_ns - summary.interval_low_ns;
  return PercentText(50 * (std::isnan(rounds) ? stated : rounds) / summary.median_ns);
}

std::string LimitPrecisionText(const store::Summary& summary) {
  if (!(summary.floor_ns > 0)) return "-";
  return PercentText(50 * (summary.limit_high - summary.limit_low) / summary.percent_of_limit);
}

std::string LineText(const store::Summary& summary) {
  constexpr double kMoved = 1.5;
  if (!std::isfinite(summary.line_least_ns)) return "-";
  const bool moved = summary.line_most_ns > kMoved * summary.line_least_ns;
  return fmt::format("{:.0f}", summary.line_least_ns) +
         (moved ? fmt::format("-{:.0f}", summary.line_most_ns) : "");
}

std::string WrongText(const store::Summary& summary) {
  const bool compared = summary.checked_elements > 0 || summary.wrong_elements > 0;
  return compared ? std::to_string(summary.wrong_elements) : "-";
}

std::string TypeText(const store::CaseRecord& record) {
  std::string text;
  collective::DataType last{};
  for (const collective::Operation& operation : record.operations) {
    if (operation.collective == collective::Collective::kBarrier) continue;
    if (!text.empty() && operation.type == last) continue;
    last = operation.type;
    const std::string name(collective::NameOf(last));
    if (text.find(name) == std::string::npos) text += (text.empty() ? "" : " ") + name;
  }
  return text.empty() ? "-" : text;
}

std::string ValueOf(const std::vector<std::pair<std::string, std::string>>& values,
                    std::string_view name) {
  const auto found = std::ranges::find(values, name, &std::pair<std::string, std::string>::first);
  return found == values.end() ? "" : found->second;
}

std::string RanksText(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace lockstep::results::report
