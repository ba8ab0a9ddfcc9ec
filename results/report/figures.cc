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
namespace {

// Half the interval, as a share of the median. A bandwidth is uncertain by as much.
double ShareOf(const store::Summary& summary) {
  return summary.half_width_ns() / summary.median_ns;
}

// Half the interval of percent_of_limit, its longer side.
double LimitHalfWidthOf(const store::Summary& summary) {
  return std::max(summary.limit_high - summary.percent_of_limit,
                  summary.percent_of_limit - summary.limit_low);
}

}  // namespace

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

std::string TimeText(double ns, const TimeUnit& unit) { return FormatFigure(ns / unit.ns); }

std::string MedianText(const store::Summary& summary, const TimeUnit& unit) {
  return FormatFigure(summary.median_ns / unit.ns, summary.half_width_ns() / unit.ns);
}

std::string BandwidthText(double gbps, double half_width) {
  if (!std::isfinite(gbps) || gbps <= 0) return "-";
  // Of what is slow, thousandths are enough.
  return FormatFigure(gbps, gbps < 0.1 ? std::fmax(half_width, HalfWidthOfStep(1e-3)) : half_width);
}

std::string AlgorithmBandwidthText(const store::Summary& summary) {
  return BandwidthText(summary.algorithm_gbps, ShareOf(summary) * summary.algorithm_gbps);
}

std::string BusBandwidthText(const store::Summary& summary) {
  return BandwidthText(summary.bus_gbps, ShareOf(summary) * summary.bus_gbps);
}

std::string PercentText(double percent) {
  // Of what is 1000 % and more, three digits.
  return FormatFigure(percent, percent < 9.95    ? HalfWidthOfStep(0.1)
                               : percent < 99.95 ? HalfWidthOfStep(1)
                                                 : kNoHalfWidth);
}

std::string LimitText(const store::Summary& summary) {
  if (!(summary.floor_ns > 0)) return "-";
  const double percent = summary.percent_of_limit;
  const double finest = HalfWidthOfStep(percent >= 9.95 ? 1 : 0.1);
  return FormatFigure(percent, std::fmax(LimitHalfWidthOf(summary), finest));
}

std::string PartText(const store::Part& part, const TimeUnit& unit) {
  const double half_width = (part.interval_high - part.interval_low) / 2;
  if (part.units == "ns") return FormatFigure(part.median / unit.ns, half_width / unit.ns);
  const double finest = part.units.empty() ? HalfWidthOfStep(0.01) : 0;  // of a ratio
  const std::string text = FormatFigure(part.median, std::fmax(half_width, finest));
  return part.units.empty() || text == "-" ? text : text + " " + part.units;
}

std::string PrecisionText(const store::Summary& summary) {
  return summary.median_ns > 0 ? PercentText(100 * ShareOf(summary)) : "-";
}

std::string LimitPrecisionText(const store::Summary& summary) {
  if (!(summary.floor_ns > 0)) return "-";
  return PercentText(100 * LimitHalfWidthOf(summary) / summary.percent_of_limit);
}

std::string LineText(const store::Summary& summary) {
  constexpr double kVaried = 1.5;
  if (!std::isfinite(summary.line_least_ns)) return "-";
  const bool varied = summary.line_most_ns > kVaried * summary.line_least_ns;
  return fmt::format("{:.0f}", summary.line_least_ns) +
         (varied ? fmt::format("-{:.0f}", summary.line_most_ns) : "");
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
