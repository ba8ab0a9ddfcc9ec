// Answers what would resolve an ambiguous case: more launches, another minimum effect, or
// interleaving. It relies on intervals that narrow with the root of the number of launches.
#include "results/compare/launches_needed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "results/compare/change_text.h"
#include "results/compare/compare.h"

namespace lockstep::results::compare {
namespace {

constexpr double kMostMore = 200;    // launches a side that anybody would take
constexpr double kMostEffect = 0.5;  // a least effect that anybody would choose
constexpr const char* kInterleave =
    "interleave the launches of both sides (base, candidate, base, …), or say --launch-drift=0 if "
    "this machine does not drift";

std::string IntervalText(const stats::Shift& shift) {
  return fmt::format("{} .. {} %", ChangeText(std::expm1(shift.low)),
                     ChangeText(std::expm1(shift.high)));
}

std::string MoreText(std::size_t more) {
  return fmt::format("{} more launch{} a side", more, more == 1 ? "" : "es");
}

}  // namespace

std::size_t FewestToDecide(std::size_t tests) {
  const double needed = kFalseChanges / static_cast<double>(std::max<std::size_t>(tests, 1));
  std::size_t launches = kFewestLaunches;
  while (launches < 30 && 2 * stats::SmallestTail(launches, launches) > needed) ++launches;
  return launches;
}

LaunchesNeeded NeedLaunches(const stats::Shift& shift, LaunchesOf launches,
                            const Circumstances& with) {
  const std::size_t fewer = std::min(launches.base, launches.candidate);
  const std::size_t fewest = FewestToDecide(with.tests);
  if (fewer < kFewestLaunches || !std::isfinite(shift.low) || !std::isfinite(shift.high)) {
    const std::size_t more = std::max(fewest, fewer + 1) - fewer;
    return {"too few launches", MoreText(more), more};
  }
  const double half = (shift.high - shift.low) / 2;
  const double least = std::log1p(with.min_effect);
  const double size = std::abs(shift.estimate);
  const double goal = std::max(size >= least ? size : least - size, least / 4);
  const bool one_way = size >= least && (shift.low > 0 || shift.high < 0);
  const std::string wide =
      one_way ? fmt::format("it points one way, but that is not proved among {} case{}", with.tests,
                            with.tests == 1 ? "" : "s")
              : fmt::format("the interval ({}) is too wide", IntervalText(shift));
  if (!with.interleaved &&
      std::sqrt(std::max(0.0, half * half - with.allowance * with.allowance)) < goal) {
    return {fmt::format("the launches are not interleaved: drift could be the change ({})",
                        IntervalText(shift)),
            kInterleave, 0};
  }
  const double factor = std::pow(half / goal, 2);
  const double needed =
      std::max(std::ceil(static_cast<double>(fewer) * factor), static_cast<double>(fewest));
  const double more = std::max(needed - static_cast<double>(fewer), 1.0);
  if (more > kMostMore) {
    const double effect = std::expm1(std::max(-shift.low, shift.high));
    if (effect > kMostEffect) return {wide, "a quieter machine", 0};
    return {
        wide,
        fmt::format("a quieter machine, or --min-effect={:.0f}% or more", std::ceil(100 * effect)),
        0};
  }
  const auto count = static_cast<std::size_t>(more);
  return {wide, MoreText(count), count};
}

}  // namespace lockstep::results::compare
