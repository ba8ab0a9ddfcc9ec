// Pairs of cases that differ in one setting, compared round by round, those of all repetitions
// together. The interval is that of the median of the ratios, which are taken as logarithms
// (core/stats).
#include "bench/measure/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/visit_figure.h"
#include "core/base/units.h"
#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

// How samples of a round become its time.
struct Counting {
  bool calibrates;
  bool by_mean;
};

// Repetition and round: its time, ns.
using RoundTimes = std::map<std::pair<int, std::int32_t>, double>;

// Samples are maxima over ranks; rows that a rank did not complete are left out.
void AddTimes(const results::store::CaseRecord& record, const Counting& counting,
              RoundTimes& times) {
  std::map<std::int32_t, std::vector<double>> rounds;
  const results::store::Samples& samples = record.samples;
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  for (std::size_t row = 0; row < samples.round.size(); ++row) {
    std::int64_t longest = 0;
    bool complete = true;
    for (std::size_t k = row * ranks; k < (row + 1) * ranks; ++k) {
      complete = complete && samples.exit_ns[k] != results::store::Samples::kNoTime;
      longest = std::max(longest, samples.exit_ns[k] - samples.entry_ns[k]);
    }
    if (complete) rounds[samples.round[row]].push_back(static_cast<double>(longest));
  }
  if (counting.calibrates && rounds.size() > 1) rounds.erase(rounds.begin());
  for (const auto& [round, values] : rounds) {
    times[{record.repetition, round}] = FigureOfVisit(counting.by_mean, values);
  }
}

// A case in all its repetitions.
struct CaseTimes {
  RoundTimes times;
  bool failed = false;  // one of them: wrong data, or a rank that hung or was lost
};

CaseTimes TimesOf(const results::store::Run& run, const results::store::CaseRecord& first,
                  const Counting& counting) {
  CaseTimes all;
  for (const results::store::CaseRecord& record : run.cases) {
    if (record.model != first.model || record.settings != first.settings) continue;
    AddTimes(record, counting, all.times);
    all.failed = all.failed || record.judgement.verdict == verdict::Verdict::kFail;
  }
  return all;
}

// The one setting in which two cases differ; nothing if they differ in none or in more.
std::optional<std::size_t> OnlyDifference(const results::store::CaseRecord& a,
                                          const results::store::CaseRecord& b) {
  if (a.settings.size() != b.settings.size()) return std::nullopt;
  std::optional<std::size_t> difference;
  for (std::size_t i = 0; i < a.settings.size(); ++i) {
    if (a.settings[i].first != b.settings[i].first) return std::nullopt;
    if (a.settings[i].second == b.settings[i].second) continue;
    if (difference) return std::nullopt;
    difference = i;
  }
  return difference;
}

// Pairs of a case and its baseline in each option in which it has one, in their first repetition.
std::vector<results::store::OptionEffect> PairsOf(const results::store::Run& run) {
  std::vector<results::store::OptionEffect> pairs;
  for (std::size_t i = 0; i < run.cases.size() && run.cases[i].repetition == 0; ++i) {
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

std::size_t AlternativesOf(const results::store::OptionEffect& pair,
                           const std::vector<results::store::OptionEffect>& pairs) {
  return static_cast<std::size_t>(
      std::ranges::count_if(pairs, [&](const results::store::OptionEffect& other) {
        return other.baseline == pair.baseline && other.option == pair.option;
      }));
}

bool Measure(const RoundTimes& baseline, const RoundTimes& times, double confidence,
             results::store::OptionEffect& effect) {
  std::vector<double> ratios;
  for (const auto& [round, ns] : times) {
    const auto found = baseline.find(round);
    if (found == baseline.end() || ns <= 0 || found->second <= 0) continue;
    ratios.push_back(found->second / ns);
  }
  if (ratios.empty()) return false;
  const stats::MedianInterval interval = stats::EstimateMedian(ratios, confidence);
  effect.rounds = static_cast<std::int64_t>(ratios.size());
  effect.ratio = interval.median;
  effect.interval_low = interval.low;
  effect.interval_high = interval.high;
  return true;
}

// Less is not worth a word, however sure it is.
constexpr double kLeastGain = 1.01;
// Between its bounds an interval that is wider leaves room for gains that nobody would give away.
constexpr double kTooWide = 1.5;

bool Faster(const results::store::OptionEffect& effect) {
  return effect.interval_low > 1 && effect.ratio >= kLeastGain;
}
bool Slower(const results::store::OptionEffect& effect) { return effect.interval_high < 1; }

// "bucket_cap_mb=10: 1.25 times faster than the default (95 %: 1.23 to 1.27)"; "as fast as" where
// the difference is not worth a word.
std::string TextOf(const results::store::OptionEffect& effect) {
  const bool faster = effect.ratio > 1;
  const auto times = [faster](double ratio) { return faster ? ratio : 1 / ratio; };
  const auto [low, high] = std::minmax({times(effect.interval_low), times(effect.interval_high)});
  // Advice needs no more than hundredths.
  const double half_width = std::max((high - low) / 2, HalfWidthOfStep(0.01));
  const std::string figure = FormatFigure(times(effect.ratio), half_width);
  const bool equal = !Slower(effect) && times(effect.ratio) < kLeastGain;
  return fmt::format(
      "{}={}: {} {}{} (95 %: {} to {})", effect.option, effect.value,
      equal ? "as fast as" : figure + (faster ? " times faster than" : " times slower than"),
      effect.baseline_value == "default" ? "the " : "", effect.baseline_value,
      FormatFigure(low, half_width), FormatFigure(high, half_width));
}

// Of each option the value that gains most, if one gains anything for sure.
std::vector<const results::store::OptionEffect*> GainsOf(
    const std::vector<const results::store::OptionEffect*>& effects) {
  std::vector<const results::store::OptionEffect*> gains;
  for (const results::store::OptionEffect* effect : effects) {
    if (!Faster(*effect)) continue;
    const auto same =
        std::ranges::find(gains, effect->option, &results::store::OptionEffect::option);
    if (same == gains.end()) {
      gains.push_back(effect);
    } else if (effect->ratio > (*same)->ratio) {
      *same = effect;
    }
  }
  return gains;
}

// Where nothing is faster, so that nobody need choose. What is known of one option tells nothing of
// another.
std::string NothingGained(const std::vector<const results::store::OptionEffect*>& effects) {
  std::int64_t rounds = 0;
  bool known = true;
  const results::store::OptionEffect* best = effects.front();
  const results::store::OptionEffect* most = best;  // the one that may gain most
  for (const results::store::OptionEffect* effect : effects) {
    rounds = std::max(rounds, effect->rounds);
    known = known && (Slower(*effect) || effect->interval_high < kTooWide * effect->interval_low);
    if (effect->ratio > best->ratio) best = effect;
    if (effect->interval_high > most->interval_high) most = effect;
  }
  std::string slower;
  for (const results::store::OptionEffect* effect : effects) {
    if (Slower(*effect) && (known || effect != best)) slower += "; " + TextOf(*effect);
  }
  if (known && most->interval_high < kLeastGain) {
    return fmt::format(
        "keep the defaults: in {} rounds no option made a step faster by 1 % or more{}", rounds,
        slower);
  }
  if (known) {
    return fmt::format(
        "keep the defaults: {} rounds resolve no gain; {}={} may be faster by up to {:.1f} %{}",
        rounds, most->option, most->value, 100 * (most->interval_high - 1), slower);
  }
  return fmt::format("undecided after {} round{}; {} is {}; a longer --time-budget narrows it{}",
                     rounds, rounds == 1 ? "" : "s",
                     best->ratio >= kLeastGain ? "best" : "no option looks faster; the nearest",
                     TextOf(*best), slower);
}

// The sentence about one context: effects whose baseline is the case with all defaults.
std::string AdviceOf(const results::store::Run& run, std::int32_t baseline) {
  std::vector<const results::store::OptionEffect*> effects;
  for (const results::store::OptionEffect& effect : run.effects) {
    if (effect.baseline == baseline) effects.push_back(&effect);
  }
  if (effects.empty()) return "";
  std::vector<std::string> parts;
  for (const results::store::OptionEffect* gain : GainsOf(effects)) parts.push_back(TextOf(*gain));
  const std::string text = parts.empty() ? NothingGained(effects)
                                         : fmt::format("{}{}", fmt::join(parts, "; "),
                                                       parts.size() > 1 ? "; each alone" : "");
  const std::string& model = run.cases[static_cast<std::size_t>(baseline)].model;
  return (model.empty() ? "" : model + ": ") + text;
}

}  // namespace

void AddEffects(bool calibrates, bool by_mean, results::store::Run& run) {
  const Counting counting{calibrates, by_mean};
  const std::vector<results::store::OptionEffect> pairs = PairsOf(run);
  if (pairs.empty()) return;
  std::vector<CaseTimes> cases;
  for (const results::store::CaseRecord& record : run.cases) {
    if (record.repetition == 0) cases.push_back(TimesOf(run, record, counting));
  }
  const auto of = [&cases](std::int32_t i) -> const CaseTimes& {
    return cases[static_cast<std::size_t>(i)];
  };
  std::vector<results::store::OptionEffect> sound = pairs;
  std::erase_if(sound, [&of](const results::store::OptionEffect& pair) {
    return of(pair.baseline).failed || of(pair.case_index).failed;
  });
  for (results::store::OptionEffect effect : sound) {
    const double doubt = 0.05 / static_cast<double>(AlternativesOf(effect, sound));
    if (Measure(of(effect.baseline).times, of(effect.case_index).times, 1 - doubt, effect)) {
      run.effects.push_back(effect);
    }
  }
  // A case that has no baseline in any option is itself the default of its context, also where it
  // failed: nothing stands in for it.
  for (std::int32_t i = 0; i < std::ssize(cases); ++i) {
    const bool differs = std::ranges::any_of(
        pairs, [i](const results::store::OptionEffect& pair) { return pair.case_index == i; });
    if (differs) continue;
    const std::string advice = AdviceOf(run, i);
    if (advice.empty()) continue;
    run.recommendation += (run.recommendation.empty() ? "" : ". ") + advice;
  }
}

}  // namespace lockstep::bench::measure
