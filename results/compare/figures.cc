// Reduces a run to one figure a case and rank excesses, which is all that comparisons keep of it.
// Repetitions are merged, because they share a launch and are no replicates.
#include "results/compare/figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "core/stats/stats.h"

namespace lockstep::results::compare {
namespace {

double MedianOrNan(const std::vector<double>& values) {
  return values.empty() ? kNan : stats::Median(values);
}

// Each value less the median of the others. The median of the others follows from the sorted
// values: leaving one out moves the middle by half a place.
void SubtractOthers(std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t others = values.size() - 1;
  for (double& own : values) {
    const auto place = static_cast<std::size_t>(
        std::lower_bound(sorted.begin(), sorted.end(), own) - sorted.begin());
    const auto other = [&](std::size_t i) { return sorted[i < place ? i : i + 1]; };
    own -= (other((others - 1) / 2) + other(others / 2)) / 2;
  }
}

// What ranks are compared by: iterations, or visits where these have a figure by their mean.
struct Visits {
  bool by_mean = false;
  bool calibrates = false;
};

// How far each rank is from the others, one value an iteration or a visit.
class Distances {
 public:
  explicit Distances(std::size_t ranks) : of_rank_(ranks), sums_(ranks) {}

  // The values of all ranks in one iteration; left out where one is NaN.
  void Add(const std::vector<double>& row) {
    if (!std::all_of(row.begin(), row.end(), [](double one) { return std::isfinite(one); })) return;
    for (std::size_t rank = 0; rank < row.size(); ++rank) sums_[rank] += row[rank];
    ++count_;
  }

  // The iterations since the last time count by their mean. It is taken before ranks are compared:
  // they need not wait in the same iteration.
  void Close() {
    if (count_ == 0) return;
    for (double& sum : sums_) sum /= count_;
    SubtractOthers(sums_);
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) of_rank_[rank].push_back(sums_[rank]);
    sums_.assign(sums_.size(), 0);
    count_ = 0;
  }

  std::vector<double> Medians(bool without_first) const {
    std::vector<double> medians;
    for (const std::vector<double>& values : of_rank_) {
      const auto begin = values.begin() + (without_first && values.size() > 1 ? 1 : 0);
      medians.push_back(MedianOrNan({begin, values.end()}));
    }
    return medians;
  }

 private:
  std::vector<std::vector<double>> of_rank_;
  std::vector<double> sums_;
  int count_ = 0;
};

// `value` gives that of a row of iterations x ranks.
template <typename Value>
RankExcess ExcessOf(std::string what, const store::Samples& samples, Visits visits,
                    const Value& value) {
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  Distances distances(ranks);
  std::vector<double> row(ranks);
  for (std::size_t i = 0; i < static_cast<std::size_t>(samples.iterations()); ++i) {
    if (i > 0 && !(visits.by_mean && samples.round[i] == samples.round[i - 1])) distances.Close();
    for (std::size_t rank = 0; rank < ranks; ++rank) row[rank] = value(i * ranks + rank);
    distances.Add(row);
  }
  distances.Close();
  return {std::move(what), distances.Medians(visits.by_mean && visits.calibrates)};
}

std::vector<RankExcess> ExcessesOf(const store::CaseRecord& record, Visits visits) {
  const store::Samples& samples = record.samples;
  if (samples.iterations() == 0 || samples.ranks < 2) return {};
  const auto stamp = [](std::int64_t ns) {
    return ns == store::Samples::kNoTime ? kNan : static_cast<double>(ns);
  };
  const auto entry = [&](std::size_t i) { return stamp(samples.entry_ns[i]); };
  const auto exit = [&](std::size_t i) { return stamp(samples.exit_ns[i]); };
  // Not when it enters: who left the barrier before the iteration first is the one who came last.
  std::vector<RankExcess> all;
  all.push_back(ExcessOf("leaves later", samples, visits, exit));
  all.push_back(
      ExcessOf("takes longer", samples, visits, [&](std::size_t i) { return exit(i) - entry(i); }));
  for (const store::Part& part : record.parts) {
    if (part.units != "ns" || part.values.size() != samples.entry_ns.size()) continue;
    all.push_back(ExcessOf(part.name + " longer", samples, visits,
                           [&](std::size_t i) { return part.values[i]; }));
  }
  return all;
}

CaseFigures FiguresOf(const store::CaseRecord& record, Visits visits) {
  CaseFigures figures{.name = record.name,
                      .backend = record.backend,
                      .ranks = record.ranks,
                      .verdict = record.judgement.verdict,
                      .outcome = OutcomeOf(record.judgement),
                      .is_trial = record.trial.has_value()};
  const bool measured = record.summary.median_ns > 0 && std::isfinite(record.summary.median_ns);
  if (measured && record.judgement.verdict != verdict::Verdict::kFail && !figures.is_trial) {
    figures.median_ns = record.summary.median_ns;
    figures.by_rank = ExcessesOf(record, visits);
  }
  return figures;
}

bool IsWorse(verdict::Verdict a, verdict::Verdict b) {
  const auto badness = [](verdict::Verdict v) {
    return v == verdict::Verdict::kFail ? 2 : v == verdict::Verdict::kUnknown ? 1 : 0;
  };
  return badness(a) > badness(b);
}

// Repetitions are no replicates: they share a launch. Their names differ in "/repetition:n".
std::string NameWithoutRepetition(const std::string& name) {
  return name.substr(0, name.find("/repetition:"));
}

std::vector<CaseFigures> MergeRepetitions(const std::vector<store::CaseRecord>& records,
                                          const Planned& planned) {
  std::vector<CaseFigures> cases;
  std::vector<std::vector<double>> medians;
  std::map<std::string, std::size_t> place;
  for (const store::CaseRecord& record : records) {
    const std::string name = NameWithoutRepetition(record.name);
    CaseFigures figures = FiguresOf(record, {planned.by_mean.contains(name), planned.calibrates});
    figures.name = name;
    const auto [known, is_new] = place.try_emplace(
        fmt::format("{}\n{}\n{}", figures.name, figures.backend, figures.ranks), cases.size());
    const double median_ns = figures.median_ns;
    if (is_new) {
      cases.push_back(std::move(figures));
      medians.emplace_back();
    } else if (IsWorse(figures.verdict, cases[known->second].verdict)) {
      cases[known->second].verdict = figures.verdict;
      cases[known->second].outcome = figures.outcome;
    }
    if (std::isfinite(median_ns)) medians[known->second].push_back(median_ns);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].median_ns = MedianOrNan(medians[i]);
  return cases;
}

// The command without where its file goes, which differs from launch to launch.
std::string CommandOf(const store::Run& run) {
  std::string command;
  bool skip = false;
  for (std::size_t begin = 0; begin < run.command_line.size();) {
    const std::size_t end = std::min(run.command_line.find(' ', begin), run.command_line.size());
    const std::string word = run.command_line.substr(begin, end - begin);
    begin = end + 1;
    const bool is_output = word == "--output";
    if (!skip && !is_output && !word.starts_with("--output=")) {
      command += (command.empty() ? "" : " ") + word;
    }
    skip = is_output;
  }
  return command;
}

}  // namespace

std::string_view FactOf(const Launch& launch, std::string_view fact) {
  for (const auto& [name, value] : launch.facts) {
    if (name == fact) return value;
  }
  return "";
}

bool HasTime(const Launch& launch) {
  return std::ranges::any_of(launch.cases,
                             [](const CaseFigures& one) { return std::isfinite(one.median_ns); });
}

std::vector<double> Logs(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

std::string OutcomeOf(const verdict::Judgement& judgement) {
  if (judgement.verdict == verdict::Verdict::kPass) return "pass";
  std::string causes;
  for (const verdict::Finding& finding : judgement.findings) {
    if (causes.find(finding.cause.name()) != std::string::npos) continue;
    causes += fmt::format("{}{}", causes.empty() ? "" : ", ", finding.cause.name());
  }
  constexpr int kShown = 4;
  std::string ranks;
  int shown = 0;
  for (const verdict::RankOutcome& rank : judgement.outcomes) {
    if (rank.outcome == verdict::Outcome::kFinished || ++shown > kShown) continue;
    ranks += fmt::format("{}rank {} {}", ranks.empty() ? "" : ", ", rank.rank,
                         verdict::NameOf(rank.outcome));
  }
  if (shown > kShown) ranks += fmt::format(" and {} more", shown - kShown);
  const std::string details = causes + (causes.empty() || ranks.empty() ? "" : "; ") + ranks;
  return fmt::format("{}{}{}", verdict::NameOf(judgement.verdict), details.empty() ? "" : ": ",
                     details);
}

Launch FiguresOf(const store::Run& run, std::string path) {
  Launch launch;
  launch.path = std::move(path);
  launch.id = run.id;
  launch.program = run.name;
  launch.started_at = run.started_at;
  launch.verdict = run.judgement.verdict;
  launch.outcome = OutcomeOf(run.judgement);
  launch.facts = run.environment;
  launch.facts.emplace_back("command", CommandOf(run));
  launch.facts.emplace_back("plan", run.plan_hash);
  launch.facts.emplace_back(kLockstepFact, store::LockstepOf(run));
  launch.floors = run.floors;
  launch.planned = PlannedBy(run.plan_text);
  launch.cases = MergeRepetitions(run.cases, launch.planned);
  return launch;
}

}  // namespace lockstep::results::compare
