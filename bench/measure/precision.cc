// The precision that a run came to, and an estimate of the time that the rest would take: the
// interval of a median shrinks with the square root of the rounds.
#include "bench/measure/precision.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace lockstep::bench::measure {
namespace {

using results::store::CaseRecord;
using results::store::Summary;

// From the first entry to the last exit of any case.
double MeasuredSeconds(const results::store::Run& run) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (const CaseRecord& record : run.cases) {
    for (const std::int64_t ns : record.samples.entry_ns) {
      if (ns != results::store::Samples::kNoTime) first = std::min(first, ns);
    }
    for (const std::int64_t ns : record.samples.exit_ns) last = std::max(last, ns);
  }
  return first < last ? static_cast<double>(last - first) * 1e-9 : 0;
}

// 47 s becomes 50: the estimate is no better than that.
std::int64_t RoundedUp(double seconds) {
  const double step = seconds <= 10 ? 1 : seconds <= 100 ? 10 : 100;
  return static_cast<std::int64_t>(std::ceil(seconds / step) * step);
}

}  // namespace

std::string PrecisionClause(const results::store::Run& run, double precision) {
  constexpr double kLongestSeconds = 3600;
  int measured = 0, precise = 0, repetitions = 1;
  double spent = 0, needed = 0;
  for (const CaseRecord& record : run.cases) {
    const Summary& summary = record.summary;
    if (summary.rounds == 0 || !(summary.median_ns > 0)) continue;
    const bool enough = summary.stopped_by == "precision";
    const double asked_ns = precision * summary.median_ns;
    const double ratio = enough ? 1 : std::max(1.0, summary.half_width_ns() / asked_ns);
    const double cost = static_cast<double>(summary.iterations) * summary.median_ns;
    ++measured;
    precise += enough;
    repetitions = std::max(repetitions, record.repetition + 1);
    spent += cost;
    needed += cost * ratio * ratio;
  }
  if (measured == 0) return "";
  const std::string text = precise == measured ? fmt::format("; all to ±{:.3g} %", 100 * precision)
                                               : fmt::format("; {} of {} to ±{:.3g} %", precise,
                                                             measured, 100 * precision);
  const double seconds = MeasuredSeconds(run) / repetitions * needed / spent;
  if (precise == measured || !(seconds > 0 && seconds < kLongestSeconds)) return text;
  const std::string all = measured == 1 ? "it takes" : fmt::format("all {} take", measured);
  return text + fmt::format("; {0} about {1} s: --time-budget={1}s", all, RoundedUp(seconds));
}

}  // namespace lockstep::bench::measure
