#include "bench/harness/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/stats/stats.h"

namespace lockstep {
namespace {

using RoundTimes = std::map<std::int32_t, double>;  // round: median of its samples, ns

// Samples are maxima over ranks; rows that a rank did not complete are left out.
RoundTimes TimesOf(const CaseRecord& record, bool calibrates) {
  std::map<std::int32_t, std::vector<double>> rounds;
  const Samples& samples = record.samples;
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  for (std::size_t row = 0; row < samples.round.size(); ++row) {
    std::int64_t longest = 0;
    bool complete = true;
    for (std::size_t k = row * ranks; k < (row + 1) * ranks; ++k) {
      complete = complete && samples.exit_ns[k] != Samples::kNoTime;
      longest = std::max(longest, samples.exit_ns[k] - samples.entry_ns[k]);
    }
    if (complete) rounds[samples.round[row]].push_back(static_cast<double>(longest));
  }
  if (calibrates && !rounds.empty()) rounds.erase(rounds.begin());
  RoundTimes times;
  for (const auto& [round, values] : rounds) times[round] = Median(values);
  return times;
}

// The one setting in which two cases differ; nothing if they differ in none or in more.
std::optional<std::size_t> OnlyDifference(const CaseRecord& a, const CaseRecord& b) {
  if (a.repetition != b.repetition || a.settings.size() != b.settings.size()) return std::nullopt;
  std::optional<std::size_t> difference;
  for (std::size_t i = 0; i < a.settings.size(); ++i) {
    if (a.settings[i].first != b.settings[i].first) return std::nullopt;
    if (a.settings[i].second == b.settings[i].second) continue;
    if (difference) return std::nullopt;
    difference = i;
  }
  return difference;
}

// Pairs of a case and its baseline in each option in which it has one.
std::vector<OptionEffect> PairsOf(const Run& run) {
  std::vector<OptionEffect> pairs;
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    std::map<std::size_t, std::size_t> baselines;  // setting: the first such case
    for (std::size_t j = 0; j < i; ++j) {
      const std::optional<std::size_t> setting = OnlyDifference(run.cases[i], run.cases[j]);
      if (setting) baselines.emplace(*setting, j);
    }
    for (const auto& [setting, baseline] : baselines) {
      const auto& [option, value] = run.cases[i].settings[setting];
      if (option == "model") continue;  // models are not alternatives
      pairs.push_back({option, value, run.cases[baseline].settings[setting].second,
                       static_cast<std::int32_t>(i), static_cast<std::int32_t>(baseline)});
    }
  }
  return pairs;
}

std::size_t AlternativesOf(const OptionEffect& pair, const std::vector<OptionEffect>& pairs) {
  return static_cast<std::size_t>(
      std::count_if(pairs.begin(), pairs.end(), [&](const OptionEffect& other) {
        return other.baseline == pair.baseline && other.option == pair.option;
      }));
}

bool Measure(const RoundTimes& baseline, const RoundTimes& times, double confidence,
             OptionEffect& effect) {
  // Of logarithms: half and twice as fast are as far from 1, and no bound is below 0.
  std::vector<double> ratios;
  for (const auto& [round, ns] : times) {
    const auto found = baseline.find(round);
    if (found == baseline.end() || ns <= 0 || found->second <= 0) continue;
    ratios.push_back(std::log(found->second / ns));
  }
  if (ratios.empty()) return false;
  const MedianInterval interval = EstimateMedian(ratios, confidence);
  effect.rounds = static_cast<std::int64_t>(ratios.size());
  effect.ratio = std::exp(interval.median);
  effect.interval_low = std::isfinite(interval.low) ? std::exp(interval.low) : interval.low;
  effect.interval_high = std::exp(interval.high);
  return true;
}

bool Faster(const OptionEffect& effect) { return effect.interval_low > 1; }
bool Slower(const OptionEffect& effect) { return effect.interval_high < 1; }

std::string IntervalText(const OptionEffect& effect) {
  return fmt::format("(95 %: {:.2f} to {:.2f})", effect.interval_low, effect.interval_high);
}

// An on/off option is told as what having it costs, in percent of a step without or with it.
bool IsSwitch(const OptionEffect& effect) {
  return (effect.value == "true" || effect.value == "false");
}

std::string SwitchText(const OptionEffect& effect) {
  // The time with the option on, as a multiple of the time without it.
  const bool on = effect.value == "true";
  const auto cost = [&](double ratio) { return 100 * (on ? 1 / ratio - 1 : 1 - 1 / ratio); };
  const auto [low, high] = std::minmax({cost(effect.interval_low), cost(effect.interval_high)});
  const double percent = cost(effect.ratio);
  return fmt::format("{} {} {:.1f} % of a step (95 %: {:.1f} to {:.1f})", effect.option,
                     percent > 0 ? "costs" : "saves", std::abs(percent), percent > 0 ? low : -high,
                     percent > 0 ? high : -low);
}

std::string ValueText(const OptionEffect& effect) {
  return fmt::format("{}={}: {:.2f}x over {}{} {}", effect.option, effect.value, effect.ratio,
                     effect.baseline_value == "default" ? "the " : "", effect.baseline_value,
                     IntervalText(effect));
}

// The sentence about one context: effects whose baseline is the case with all defaults.
std::string AdviceOf(const Run& run, std::int32_t baseline) {
  std::vector<std::string> parts;
  const OptionEffect* best = nullptr;
  std::int64_t rounds = 0;
  bool any = false;
  bool known = false;
  for (const OptionEffect& effect : run.effects) {
    if (effect.baseline != baseline) continue;
    any = true;
    known = known || std::isfinite(effect.interval_low);
    rounds = std::max(rounds, effect.rounds);
    if (effect.option == "bucket_cap_mb") {
      if (Faster(effect) && (best == nullptr || effect.ratio > best->ratio)) best = &effect;
    } else if (Faster(effect) || Slower(effect)) {
      parts.push_back(IsSwitch(effect) ? SwitchText(effect) : ValueText(effect));
    }
  }
  if (!any) return "";
  if (best != nullptr) parts.insert(parts.begin(), ValueText(*best));
  if (parts.empty()) {
    parts.push_back(
        known ? fmt::format(
                    "no option makes a step significantly faster in {} rounds: keep the defaults",
                    rounds)
              : fmt::format("too few rounds to compare options ({}): give a longer --time-budget",
                            rounds));
  }
  const std::string& model = run.cases[static_cast<std::size_t>(baseline)].model;
  return fmt::format("{}{}", model.empty() ? "" : model + ": ", fmt::join(parts, "; "));
}

}  // namespace

void AddEffects(bool calibrates, Run& run) {
  const std::vector<OptionEffect> pairs = PairsOf(run);
  if (pairs.empty()) return;
  std::vector<RoundTimes> times;
  for (const CaseRecord& record : run.cases) times.push_back(TimesOf(record, calibrates));
  for (OptionEffect effect : pairs) {
    const double doubt = 0.05 / static_cast<double>(AlternativesOf(effect, pairs));
    if (Measure(times[static_cast<std::size_t>(effect.baseline)],
                times[static_cast<std::size_t>(effect.case_index)], 1 - doubt, effect)) {
      run.effects.push_back(effect);
    }
  }
  // A case that has no baseline in any option is itself the default of its context.
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(run.cases.size()); ++i) {
    const bool differs = std::any_of(
        pairs.begin(), pairs.end(), [i](const OptionEffect& pair) { return pair.case_index == i; });
    if (differs || run.cases[static_cast<std::size_t>(i)].repetition > 0) continue;
    const std::string advice = AdviceOf(run, i);
    if (advice.empty()) continue;
    run.recommendation += (run.recommendation.empty() ? "" : ". ") + advice;
  }
}

}  // namespace lockstep
