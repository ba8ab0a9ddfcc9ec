// Judges one case: first its outcomes, then its time, then single ranks. Times are compared as
// logarithms, so effects are ratios. Where launches are missing the verdict fails closed: neither
// same nor faster is said.
#include "results/compare/case_verdict.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>

#include "core/stats/stats.h"
#include "results/compare/change_text.h"
#include "results/compare/figures.h"
#include "results/compare/launches_needed.h"

namespace lockstep::results::compare {
namespace {

const RankExcess* ExcessNamed(const CaseFigures& figures, const std::string& what) {
  for (const RankExcess& excess : figures.by_rank) {
    if (excess.what == what) return &excess;
  }
  return nullptr;
}

// launches x ranks, in parts of the case's time; empty when a launch lacks it or has another number
// of ranks.
std::vector<std::vector<double>> Excesses(std::span<const CaseFigures* const> launches,
                                          const std::string& what, std::size_t ranks) {
  std::vector<std::vector<double>> all;
  for (const CaseFigures* figures : launches) {
    const RankExcess* excess = ExcessNamed(*figures, what);
    if (excess == nullptr || excess->ns.size() != ranks || !(figures->median_ns > 0)) return {};
    std::vector<double>& launch = all.emplace_back(excess->ns);
    for (double& one : launch) {
      if (!std::isfinite(one)) return {};
      one /= figures->median_ns;
    }
  }
  return all;
}

std::vector<double> OfRank(const std::vector<std::vector<double>>& excesses, std::size_t rank) {
  std::vector<double> values;
  for (const std::vector<double>& launch : excesses) values.push_back(launch[rank]);
  return values;
}

// A shift for each rank and each excess that all launches have. When all ranks became slower alike,
// because they wait for one, it is in no rank's excess and not here.
std::vector<RankShift> RankShiftsOf(std::span<const CaseFigures* const> base,
                                    std::span<const CaseFigures* const> candidate,
                                    double allowance) {
  std::vector<RankShift> shifts;
  if (base.empty() || candidate.empty()) return shifts;
  for (const RankExcess& excess : base.front()->by_rank) {
    const std::size_t ranks = excess.ns.size();
    const auto before = Excesses(base, excess.what, ranks);
    const auto after = Excesses(candidate, excess.what, ranks);
    if (before.empty() || after.empty()) continue;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      shifts.push_back(
          {static_cast<int>(rank), excess.what,
           stats::EstimateShift(OfRank(before, rank), OfRank(after, rank), 0.95, allowance)});
    }
  }
  return shifts;
}

std::vector<double> TimesOf(const GroupSide& side) {
  std::vector<double> times;
  for (const CaseFigures* figures : side.figures) {
    if (std::isfinite(figures->median_ns)) times.push_back(figures->median_ns);
  }
  return times;
}

std::vector<std::string> StartsOf(const GroupSide& side) {
  std::vector<std::string> starts;
  for (const Launch* launch : side.launches) starts.push_back(launch->started_at + launch->id);
  return starts;
}

std::vector<const CaseFigures*> Timed(const GroupSide& side) {
  std::vector<const CaseFigures*> timed;
  for (const CaseFigures* figures : side.figures) {
    if (std::isfinite(figures->median_ns)) timed.push_back(figures);
  }
  return timed;
}

SideOfCase Summarize(const GroupSide& side) {
  SideOfCase summary;
  summary.launches = side.expected;
  const std::vector<double> times = TimesOf(side);
  summary.timed = times.size();
  summary.median_ns = times.empty() ? kNan : stats::Median(times);
  std::map<std::string, int> outcomes;
  for (const CaseFigures* figures : side.figures) {
    if (figures->verdict == verdict::Verdict::kFail) ++summary.failed;
    if (figures->verdict == verdict::Verdict::kUnknown) ++summary.unknown;
    if (figures->verdict != verdict::Verdict::kPass) ++outcomes[figures->outcome];
  }
  summary.outcome = side.figures.empty() ? "absent" : "pass";
  int most = 0;
  for (const auto& [outcome, count] : outcomes) {
    if (count > most) summary.outcome = outcome;
    most = std::max(most, count);
  }
  return summary;
}

// Of which it is known whether the case passed.
std::size_t KnownRuns(const GroupSide& side, const SideOfCase& summary) {
  return side.figures.size() - summary.unknown;
}

// One failure where there was none is news, and none where there was one is, too, when all of the
// candidate's launches passed. Where there were some already, more of them count when chance does
// not explain it (all orders of passing and failing launches equally likely). Fewer of them are
// still failures.
OutcomeChange OutcomeChangeOf(const SideOfCase& base, std::size_t base_known,
                              const SideOfCase& candidate, std::size_t candidate_known) {
  if (base_known == 0 || candidate_known == 0) return OutcomeChange::kNone;
  if (candidate.failed > 0 && base.failed == 0) return OutcomeChange::kWorse;
  if (candidate.failed == 0 && base.failed > 0)
    return candidate.unknown == 0 ? OutcomeChange::kBetter : OutcomeChange::kNone;
  const auto runs = [](std::size_t failed, std::size_t all) {
    std::vector<double> values(all, 0);
    std::fill_n(values.begin(), failed, 1);
    return values;
  };
  if (candidate.failed == 0) return OutcomeChange::kNone;
  const stats::Shift shift =
      stats::EstimateShift(runs(base.failed, base_known), runs(candidate.failed, candidate_known));
  return shift.p_above <= kFalseChanges / 2 ? OutcomeChange::kWorse : OutcomeChange::kNone;
}

Effect95 EffectOf(const stats::Shift& shift) {
  return {std::expm1(shift.estimate), std::expm1(shift.low), std::expm1(shift.high)};
}

bool Enough(const CaseComparison& result) {
  return std::min(result.base.timed, result.candidate.timed) >= kFewestLaunches;
}

void FindSlowerRanks(const CaseEvidence& evidence, CaseComparison& result) {
  const std::size_t launches = std::min(result.base.timed, result.candidate.timed);
  for (std::size_t i = 0; i < evidence.rank_shifts.size(); ++i) {
    const auto& [rank, what, shift] = evidence.rank_shifts[i];
    const bool proved = (evidence.rank_q[i] <= kFalseRanks && shift.p_above < shift.p_below) ||
                        (shift.clearly_above && launches >= kFewestForClearRanks);
    if (!Enough(result) || !proved || shift.estimate < result.min_effect) continue;
    result.slower_ranks.push_back(
        {rank, what, {shift.estimate, shift.low, shift.high}, evidence.rank_q[i]});
  }
  std::ranges::sort(result.slower_ranks, [](const RankChange& a, const RankChange& b) {
    return a.effect.estimate > b.effect.estimate;
  });
}

// How the time changed, if nothing is missing.
Change ChangeOfTime(const CaseEvidence& evidence, const CaseComparison& result) {
  const stats::Shift& shift = evidence.shift;
  const bool significant = evidence.q <= kFalseChanges;
  const bool up = (significant && shift.p_above < shift.p_below) || shift.clearly_above;
  const bool down = (significant && shift.p_below < shift.p_above) || shift.clearly_below;
  const double least = std::log1p(result.min_effect);
  if (Enough(result)) {
    if (up && shift.estimate >= least) return Change::kSlower;
    if (down && shift.estimate <= -least) return Change::kFaster;
  }
  if (-least < shift.low && shift.high < least) return Change::kSame;
  // A case waits for its slowest rank: when one became slower, the case did, unless its own
  // estimate denies it (the other ranks became faster).
  if (!result.slower_ranks.empty() && shift.estimate > 0) return Change::kSlower;
  return Change::kAmbiguous;
}

std::string MissingText(const CaseComparison& result, bool is_trial) {
  const auto side = [&](const char* name, const SideOfCase& of) {
    if (of.timed > 0) return std::string();
    if (of.launches == 0) return fmt::format("no launch of {} in {}", result.program, name);
    if (of.outcome == "absent") return fmt::format("not in {}", name);
    if (is_trial) return std::string();
    if (of.failed > 0) return fmt::format("no time in {}: {}", name, of.outcome);
    return fmt::format("not measured in {}", name);
  };
  const std::string base = side("base", result.base);
  const std::string candidate = side("candidate", result.candidate);
  return base + (base.empty() || candidate.empty() ? "" : ", ") + candidate;
}

// What keeps a case from being called same or faster, or "".
std::string Incomplete(const CaseComparison& result) {
  const auto side = [](const char* name, const SideOfCase& of) {
    return of.timed == of.launches ? std::string()
                                   : fmt::format("{} of {} launches of the {} have no time of it",
                                                 of.launches - of.timed, of.launches, name);
  };
  // What failed in the base and is mended could have no time there.
  SideOfCase before = result.base;
  if (result.outcome_change == OutcomeChange::kBetter) before.launches -= before.failed;
  const std::string base = side("base", before);
  return base.empty() ? side("candidate", result.candidate) : base;
}

std::string RanksText(const CaseComparison& result) {
  std::string text;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, result.slower_ranks.size()); ++i) {
    const RankChange& rank = result.slower_ranks[i];
    text += fmt::format("{}rank {} {} than its peers ({} %)", i > 0 ? ", " : "", rank.rank,
                        rank.what, ChangeText(rank.effect.estimate));
  }
  if (result.slower_ranks.size() > kShown) {
    text += fmt::format(" and {} more", result.slower_ranks.size() - kShown);
  }
  return text;
}

void JudgeTime(const CaseEvidence& evidence, std::size_t tests, CaseComparison& result) {
  result.effect = EffectOf(evidence.shift);
  result.p = TwoSided(evidence.shift);
  result.q = evidence.q;
  FindSlowerRanks(evidence, result);
  result.change = ChangeOfTime(evidence, result);
  if (!result.slower_ranks.empty())
    result.why = RanksText(result);
  else if (result.change == Change::kSlower && !evidence.rank_shifts.empty())
    result.why = "no rank stands out";
  const std::string incomplete = Incomplete(result);
  if (!incomplete.empty() && result.change != Change::kSlower) {
    result.change = Change::kAmbiguous;
    result.why = incomplete;
    result.resolve = "measure it in every launch";
  } else if (result.change == Change::kAmbiguous) {
    const LaunchesNeeded needed =
        NeedLaunches(evidence.shift, {result.base.timed, result.candidate.timed},
                     {evidence.interleaved, evidence.allowance, result.min_effect, tests});
    if (result.why.empty()) result.why = needed.why;
    result.resolve = needed.resolve;
  }
}

// Why nothing is said of a case that fails on both sides, or of which nobody knows, or "".
std::string DoubtOf(const CaseEvidence& evidence, const CaseComparison& result) {
  const auto side = [](const SideOfCase& of, std::size_t doubtful, std::size_t runs) {
    return fmt::format("{} in {} of {} launches", of.outcome, doubtful, runs);
  };
  const std::size_t doubtful = result.candidate.failed + result.candidate.unknown;
  if (doubtful > 0) {
    return side(result.candidate, doubtful, evidence.group.candidate.figures.size()) +
           (result.base.failed + result.base.unknown > 0 ? ", as before" : "");
  }
  // Without a time the outcome is all that could be the same.
  const std::size_t base_runs = evidence.group.base.figures.size();
  const bool no_base = !evidence.timed && base_runs > 0 && result.base.unknown == base_runs;
  return no_base ? side(result.base, base_runs, base_runs) + " of the base" : "";
}

// What is to be said of an outcome that changed, and of the time beside it.
void TellOutcome(const CaseEvidence& evidence, CaseComparison& result) {
  const bool worse = result.outcome_change == OutcomeChange::kWorse;
  const std::string& outcome = worse ? result.candidate.outcome : result.base.outcome;
  const bool of_time = result.change == Change::kSlower ||
                       (!result.OutcomeSaysAll() && result.change != Change::kSame);
  const std::string time = of_time && !result.why.empty() ? "; " + result.why : "";
  result.why = fmt::format("{} {} ({} of {} launches, before {} of {}){}",
                           worse ? "now" : "no longer", outcome, result.candidate.failed,
                           KnownRuns(evidence.group.candidate, result.candidate),
                           result.base.failed, KnownRuns(evidence.group.base, result.base), time);
  if (worse) result.resolve = "`lockstep diagnose` says why";
  if (!worse && result.OutcomeSaysAll()) result.resolve.clear();
}

void JudgeOutcome(const CaseEvidence& evidence, CaseComparison& result) {
  if (result.outcome_change != OutcomeChange::kNone) return TellOutcome(evidence, result);
  const std::string doubt = DoubtOf(evidence, result);
  if (doubt.empty() || result.change == Change::kSlower) return;
  if (result.change != Change::kMissing) result.change = Change::kAmbiguous;
  result.why = doubt;
  result.resolve = "mend or leave out what fails; `lockstep diagnose` says why";
}

bool IsTrial(const CaseGroup& group) {
  for (const GroupSide* side : {&group.base, &group.candidate}) {
    for (const CaseFigures* figures : side->figures) {
      if (!figures->is_trial) return false;
    }
  }
  return true;
}

}  // namespace

double TwoSided(const stats::Shift& shift) {
  return std::min(1.0, 2 * std::min(shift.p_above, shift.p_below));
}

CaseEvidence EvidenceOf(const CaseGroup& group, const CompareOptions& options) {
  CaseEvidence evidence;
  evidence.group = group;
  const std::vector<double> base = TimesOf(group.base);
  const std::vector<double> candidate = TimesOf(group.candidate);
  evidence.timed = !base.empty() && !candidate.empty();
  if (!evidence.timed) return evidence;
  evidence.interleaved = AreInterleaved(StartsOf(group.base), StartsOf(group.candidate));
  evidence.allowance = evidence.interleaved ? 0 : std::log1p(options.drift);
  evidence.shift =
      stats::EstimateShift(Logs(base), Logs(candidate), kConfidence, evidence.allowance);
  evidence.rank_shifts =
      RankShiftsOf(Timed(group.base), Timed(group.candidate), evidence.allowance);
  return evidence;
}

CaseComparison JudgeCase(const CaseEvidence& evidence, double min_effect, std::size_t tests) {
  const CaseGroup& group = evidence.group;
  CaseComparison result;
  result.program = group.program;
  result.name = group.name;
  result.backend = group.backend;
  result.ranks = group.ranks;
  result.work = group.work;
  result.base = Summarize(group.base);
  result.candidate = Summarize(group.candidate);
  result.min_effect = min_effect;
  result.effect = {kNan, kNan, kNan};
  result.outcome_change =
      OutcomeChangeOf(result.base, KnownRuns(group.base, result.base), result.candidate,
                      KnownRuns(group.candidate, result.candidate));
  const bool both = !group.base.figures.empty() && !group.candidate.figures.empty();
  if (IsTrial(group) && both) {
    result.change = Change::kSame;  // unless its outcome changed
  } else if (evidence.timed) {
    JudgeTime(evidence, tests, result);
  } else {
    result.change = Change::kMissing;
    result.why = MissingText(result, IsTrial(group));
    result.resolve = "measure it on both sides, or leave it out with --cases";
  }
  JudgeOutcome(evidence, result);
  return result;
}

}  // namespace lockstep::results::compare
