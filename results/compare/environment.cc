// Compares the facts of both sides, value by value, and leaves out what differs from launch to
// launch anyhow. Floors are figures, so they are compared by ranks, as times are.
#include "results/compare/environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>

#include "core/base/units.h"
#include "core/stats/stats.h"
#include "core/stats/two_samples.h"

namespace lockstep::results::compare {
namespace {

constexpr double kFloorEffect = 0.05;
constexpr double kFloorProof = 0.005;  // one-sided

using Counts = std::map<std::string, std::size_t>;  // value -> launches

// Where the first of the values begin to differ.
std::size_t EqualStart(const Counts& a, const Counts& b) {
  if (a.empty() || b.empty()) return 0;
  const std::string& first = a.begin()->first;
  std::size_t equal = first.size();
  for (const Counts* counts : {&a, &b}) {
    for (const auto& [value, launches] : *counts) {
      const auto differ = std::ranges::mismatch(first, value);
      equal = std::min(equal, static_cast<std::size_t>(differ.in1 - first.begin()));
    }
  }
  return equal;
}

// A long value without its end, or around where it begins to differ.
std::string Shortened(const std::string& value, std::size_t equal) {
  constexpr std::size_t kLongest = 60, kBefore = 30;
  if (value.size() <= kLongest) return value;
  const std::size_t begin = equal > kBefore ? equal - kBefore : 0;
  const std::string text = (begin > 0 ? "..." : "") + value.substr(begin);
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

std::string Text(const Counts& counts, std::size_t equal) {
  constexpr std::size_t kShown = 3;
  if (counts.empty()) return "none";
  if (counts.size() == 1) return Shortened(counts.begin()->first, equal);
  std::string text;
  std::size_t shown = 0;
  for (const auto& [value, launches] : counts) {
    if (++shown > kShown) break;
    text += fmt::format("{}{} ({})", shown > 1 ? ", " : "", Shortened(value, equal), launches);
  }
  if (counts.size() > kShown) text += fmt::format(", {} more values", counts.size() - kShown);
  return text;
}

// It tells a launch, and not a machine or a program: its job number, its free memory.
bool IsOfOneLaunch(std::string_view fact) {
  constexpr std::string_view kPrefixes[] = {
      "variables/OMPI_MCA_ess", "variables/OMPI_MCA_orte_", "variables/OMPI_MCA_initial_wdir",
      "variables/PMIX_",        "variables/PMI_",           "variables/SLURM_JOB",
      "variables/SLURM_STEP",   "host/memory_available",    "limits/shm_available"};
  for (const std::string_view prefix : kPrefixes) {
    if (fact.starts_with(prefix)) return true;
  }
  return fact.find("/clock_offset") != std::string_view::npos;
}

std::map<std::string, Counts> CountFacts(std::span<const Launch* const> launches) {
  std::map<std::string, Counts> facts;
  for (const Launch* launch : launches) {
    std::set<std::string> seen;
    for (const auto& [fact, value] : launch->facts) {
      if (!IsOfOneLaunch(fact) && seen.insert(fact).second) ++facts[fact][value];
    }
  }
  return facts;
}

std::vector<const Launch*> Pointers(std::span<const Launch> launches) {
  std::vector<const Launch*> pointers;
  for (const Launch& launch : launches) pointers.push_back(&launch);
  return pointers;
}

bool ShareAValue(const Counts& a, const Counts& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one.first); });
}

bool SameValues(const Counts& a, const Counts& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one.first); });
}

// With as many values as launches it says nothing about a side.
bool VariesAnyhow(const Counts& counts, std::size_t launches) {
  return launches > 1 && counts.size() == launches;
}

std::map<std::string, std::vector<double>> FloorsOf(std::span<const Launch> launches) {
  std::map<std::string, std::vector<double>> floors;
  for (const Launch& launch : launches) {
    for (const auto& [name, value] : launch.floors) {
      if (std::isfinite(value) && value > 0) floors[name].push_back(value);
    }
  }
  return floors;
}

void AddFloors(std::span<const Launch> base, std::span<const Launch> candidate,
               std::vector<Difference>& differences) {
  const auto after = FloorsOf(candidate);
  for (const auto& [name, values] : FloorsOf(base)) {
    const auto other = after.find(name);
    if (other == after.end()) continue;
    const stats::Shift shift = stats::EstimateShift(Logs(values), Logs(other->second));
    const bool proved = std::min(shift.p_above, shift.p_below) <= kFloorProof;
    if (!proved || std::abs(std::expm1(shift.estimate)) < kFloorEffect) continue;
    differences.push_back({"floor " + name, FormatFigure(stats::Median(values)),
                           fmt::format("{} ({:+.0f} %)", FormatFigure(stats::Median(other->second)),
                                       100 * std::expm1(shift.estimate)),
                           true});
  }
}

}  // namespace

std::string OtherVersionText(std::span<const Difference> differences) {
  for (const Difference& one : differences) {
    if (one.fact != kLockstepFact) continue;
    return fmt::format("measured by different versions of Lockstep: {} -> {}", one.base,
                       one.candidate);
  }
  return "";
}

std::vector<Difference> FactDifferences(std::span<const Launch* const> base,
                                        std::span<const Launch* const> candidate) {
  std::map<std::string, Counts> before = CountFacts(base);
  const std::map<std::string, Counts> after = CountFacts(candidate);
  for (const auto& [fact, counts] : after) before.try_emplace(fact);
  std::vector<Difference> all, in_part;
  for (const auto& [fact, counts] : before) {
    const auto found = after.find(fact);
    const Counts other = found == after.end() ? Counts() : found->second;
    if (SameValues(counts, other)) continue;
    if (VariesAnyhow(counts, base.size()) || VariesAnyhow(other, candidate.size())) continue;
    const bool shared = ShareAValue(counts, other);
    const std::size_t equal = EqualStart(counts, other);
    (shared ? in_part : all).push_back({fact, Text(counts, equal), Text(other, equal), !shared});
  }
  all.insert(all.end(), in_part.begin(), in_part.end());
  return all;
}

std::vector<Difference> DifferencesOf(std::span<const Launch> base,
                                      std::span<const Launch> candidate) {
  std::vector<Difference> differences = FactDifferences(Pointers(base), Pointers(candidate));
  AddFloors(base, candidate, differences);
  return differences;
}

}  // namespace lockstep::results::compare
