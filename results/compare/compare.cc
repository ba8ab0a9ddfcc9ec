// Groups, corrects for many tests, judges, sorts and concludes. Cases and ranks are corrected
// apart, because ranks are many and would take the cases' power. The exit code follows from the
// verdicts alone.
#include "results/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/stats/two_samples.h"
#include "results/compare/case_groups.h"
#include "results/compare/case_verdict.h"

namespace lockstep::results::compare {
namespace {

// Corrects the p-values of the cases, and apart from them those of the ranks, which are many more
// and would take the cases' power. Returns how many cases there are.
std::size_t Correct(std::vector<CaseEvidence>& cases) {
  std::vector<double> p_cases, p_ranks;
  for (const CaseEvidence& evidence : cases) {
    if (evidence.timed) p_cases.push_back(TwoSided(evidence.shift));
    for (const RankShift& rank : evidence.rank_shifts) p_ranks.push_back(TwoSided(rank.shift));
  }
  const std::vector<double> q_cases = stats::AdjustForMany(p_cases);
  const std::vector<double> q_ranks = stats::AdjustForMany(p_ranks);
  auto next_case = q_cases.begin();
  auto next_rank = q_ranks.begin();
  for (CaseEvidence& evidence : cases) {
    if (evidence.timed) evidence.q = *next_case++;
    for (std::size_t i = 0; i < evidence.rank_shifts.size(); ++i) {
      evidence.rank_q.push_back(*next_rank++);
    }
  }
  return q_cases.size();
}

// What a person looks at first.
constexpr Change kByUrgency[] = {Change::kSlower, Change::kMissing, Change::kAmbiguous,
                                 Change::kFaster, Change::kSame};

std::ptrdiff_t Urgency(const CaseComparison& one) {
  if (one.outcome_change == OutcomeChange::kWorse) return 0;
  const auto of = [](Change change) {
    return 1 + (std::ranges::find(kByUrgency, change) - std::begin(kByUrgency));
  };
  if (one.outcome_change == OutcomeChange::kNone) return of(one.change);
  return one.OutcomeSaysAll() ? of(Change::kFaster) : std::min(of(Change::kFaster), of(one.change));
}

std::size_t CountOutcomes(const LaunchComparison& comparison, OutcomeChange change) {
  return static_cast<std::size_t>(std::ranges::count_if(
      comparison.cases, [&](const CaseComparison& one) { return one.outcome_change == change; }));
}

// Cases of which there is something on both sides: a time, or the outcomes of trials. That a launch
// failed before its cases, and does no longer, compares none.
std::size_t CountCompared(const LaunchComparison& comparison) {
  return static_cast<std::size_t>(std::ranges::count_if(comparison.cases, [](const auto& one) {
    return one.change != Change::kMissing && one.name != kWholeLaunch;
  }));
}

ExitCode CodeOf(const LaunchComparison& comparison) {
  if (CountOutcomes(comparison, OutcomeChange::kWorse) > 0 ||
      comparison.Count(Change::kSlower) > 0) {
    return ExitCode::kRegression;
  }
  const bool open = CountCompared(comparison) == 0 || comparison.Count(Change::kAmbiguous) > 0 ||
                    comparison.Count(Change::kMissing) > 0 || !comparison.notes.empty();
  return open ? ExitCode::kInconclusive : ExitCode::kPass;
}

std::string Headline(const LaunchComparison& comparison) {
  const std::size_t worse = CountOutcomes(comparison, OutcomeChange::kWorse);
  const std::size_t better = CountOutcomes(comparison, OutcomeChange::kBetter);
  std::string counts;
  const auto add = [&](std::size_t count, std::string_view what) {
    if (count > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, what);
  };
  add(worse, worse == 1 ? "outcome worse" : "outcomes worse");
  add(better, better == 1 ? "outcome better" : "outcomes better");
  for (const Change change : kByUrgency) add(comparison.Count(change), NameOf(change));
  add(comparison.notes.size(), comparison.notes.size() == 1 ? "file not read" : "files not read");
  if (!counts.empty() && CountCompared(comparison) == 0) counts += ", no case was compared";
  const char* verdict = comparison.exit_code == ExitCode::kPass         ? "PASS"
                        : comparison.exit_code == ExitCode::kRegression ? "REGRESSION"
                                                                        : "INCONCLUSIVE";
  return fmt::format("{}: {} (of {} case{}, {} and {} launches)", verdict,
                     counts.empty() ? "nothing to compare" : counts, comparison.cases.size(),
                     comparison.cases.size() == 1 ? "" : "s", comparison.base_launches,
                     comparison.candidate_launches);
}

// "decode_passes 2, there 1": at most three.
std::string DifferenceOf(const Work& here, const Work& there) {
  constexpr std::size_t kShown = 3, kLongest = 40;
  std::vector<std::string> different;
  const auto shortened = [](const std::string& value) {
    return value.size() > kLongest ? value.substr(0, kLongest - 3) + "..." : value;
  };
  for (const auto& [option, value] : here) {
    const auto other = there.find(option);
    if (other == there.end() || other->second == value) continue;
    different.push_back(
        fmt::format("{} {}, there {}", option, shortened(value), shortened(other->second)));
  }
  if (different.size() > kShown) different.resize(kShown);
  return fmt::format("{}", fmt::join(different, "; "));
}

// A case that is missing here may be there under another backend, with other ranks or other work.
void HintAtOthersOfTheName(std::vector<CaseComparison>& cases) {
  std::map<std::string, std::vector<const CaseComparison*>> names;
  for (const CaseComparison& one : cases) names[one.program + "\n" + one.name].push_back(&one);
  for (CaseComparison& one : cases) {
    const auto& same_name = names[one.program + "\n" + one.name];
    if (one.change != Change::kMissing || same_name.size() < 2) continue;
    const auto other = std::ranges::find_if(same_name, [&](const CaseComparison* another) {
      return another->backend == one.backend && another->ranks == one.ranks &&
             another->work != one.work &&
             (another->base.outcome == "absent") != (one.base.outcome == "absent");
    });
    if (other != same_name.end()) {
      one.resolve = fmt::format(
          "the other side does other work under this name ({}): give both the same options; "
          "--across=work compares them",
          DifferenceOf(one.work, (*other)->work));
      continue;
    }
    one.resolve =
        "the other side has it with another backend or number of ranks: --across=backend,ranks "
        "compares them";
  }
}

}  // namespace

std::string_view NameOf(Change change) {
  static constexpr std::string_view kNames[] = {"same", "faster", "slower", "ambiguous", "missing"};
  return kNames[static_cast<std::size_t>(change)];
}

bool CaseComparison::OutcomeSaysAll() const {
  if (outcome_change != OutcomeChange::kBetter) return outcome_change == OutcomeChange::kWorse;
  return change == Change::kMissing && base.failed == base.launches &&
         candidate.timed == candidate.launches;
}

std::size_t LaunchComparison::Count(Change change) const {
  return static_cast<std::size_t>(std::ranges::count_if(cases, [&](const CaseComparison& one) {
    return one.change == change && !one.OutcomeSaysAll();
  }));
}

bool AreInterleaved(std::span<const std::string> base_times,
                    std::span<const std::string> candidate_times) {
  std::vector<std::pair<std::string_view, bool>> order;
  for (const std::string& time : base_times) order.emplace_back(time, false);
  for (const std::string& time : candidate_times) order.emplace_back(time, true);
  std::ranges::sort(order);
  std::size_t alternations = 0, base_so_far = 0, base_first = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && order[i].second != order[i - 1].second) ++alternations;
    if (order[i].second)
      base_first += base_so_far;
    else
      ++base_so_far;
  }
  const std::size_t fewer = std::min(base_times.size(), candidate_times.size());
  if (fewer < 2) return true;
  const double part = static_cast<double>(base_first) /
                      static_cast<double>(base_times.size() * candidate_times.size());
  return 2 * alternations >= fewer && 0.25 <= part && part <= 0.75;
}

LaunchComparison Compare(std::span<const Launch> base, std::span<const Launch> candidate,
                         const CompareOptions& options, std::vector<std::string> notes) {
  LaunchComparison comparison;
  comparison.base_launches = base.size();
  comparison.candidate_launches = candidate.size();
  comparison.notes = std::move(notes);
  comparison.drift = options.drift;
  const CaseGroups groups(base, candidate, options.cases, options.across);
  std::vector<CaseEvidence> evidence;
  for (const CaseGroup& group : groups.groups()) evidence.push_back(EvidenceOf(group, options));
  comparison.tests = Correct(evidence);
  for (const CaseEvidence& one : evidence) {
    if (one.timed && !one.interleaved) comparison.interleaved = false;
    comparison.cases.push_back(
        JudgeCase(one, options.min_effects.Of(one.group.name), comparison.tests));
  }
  HintAtOthersOfTheName(comparison.cases);
  std::ranges::stable_sort(comparison.cases, [](const CaseComparison& a, const CaseComparison& b) {
    return Urgency(a) < Urgency(b);
  });
  comparison.differences = DifferencesOf(base, candidate);
  comparison.exit_code = CodeOf(comparison);
  comparison.headline = Headline(comparison);
  return comparison;
}

}  // namespace lockstep::results::compare
