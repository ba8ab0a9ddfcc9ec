// Are the candidate's launches slower than the base's? Values in, verdicts out. Pure.
//
// The rule, for each case with a time; `shift` is the candidate's log time less the base's
// (core/stats/two_samples.h), launches are the replicates:
//   slower     the change is proved, and the estimate is at least the case's minimum effect
//   faster     likewise, the other way
//   same       the 95 % interval of the change lies within the minimum effect
//   ambiguous  none of these
//   missing    a side has no time of it
// Proved: at least kFewestLaunches a side, and either the two-sided p-value of the rank test,
// corrected for all cases of this comparison (Benjamini and Hochberg), is at most kFalseChanges, or
// the sides are as far apart as EstimateShift calls clear. So of comparisons in which nothing
// changed less than 1 % say that a case is slower (compare_simulation_test shows it for many kinds
// of noise, and how often a true change is found).
// A case is also slower when one of its ranks is, beside its peers, by the minimum effect (likewise
// proved, at kFalseRanks among all ranks), and the case's own estimate points the same way.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "results/compare/environment.h"
#include "results/compare/figures.h"
#include "results/compare/min_effect.h"
#include "results/compare/planned.h"

namespace lockstep::results::compare {

inline constexpr std::size_t kFewestLaunches = 4;
inline constexpr double kConfidence = 0.95;
inline constexpr double kFalseChanges = 0.01;  // both ways together
inline constexpr double kFalseRanks = 0.005;
inline constexpr std::size_t kFewestForClearRanks = 6;  // there are many more ranks than cases
inline constexpr double kDriftDefault = 0.05;

struct CompareOptions {
  MinEffects min_effects;
  // What the machine may have drifted between the sides when their launches were not interleaved.
  double drift = kDriftDefault;
  std::string cases = "*";  // a glob: which are compared
  // Cases of one name are compared although they differ in these: "backend", "ranks", "program";
  // with "cuda_graph" those that a graph replays with those that are called; and with "work" those
  // that options which no name tells give other work (planned.h).
  std::set<std::string> across;
};

enum class Change { kSame, kFaster, kSlower, kAmbiguous, kMissing };
std::string_view NameOf(Change change);

// What became of a case's outcome: a hang that is new, or one that is gone.
enum class OutcomeChange { kNone, kWorse, kBetter };

// A ratio of times less 1: 0.05 is 5 % more.
struct Effect95 {
  double estimate = 0;
  double low = 0;  // 95 % interval; -1 and infinity when there are too few launches
  double high = 0;
};

// A rank that is farther behind its peers than it was, in parts of the case's time.
struct RankChange {
  int rank = 0;
  std::string what;  // "leaves later", "takes longer", "load_ns longer"
  Effect95 effect;
  double q = 1;
};

struct SideOfCase {
  std::size_t launches = 0;  // that should have the case
  std::size_t timed = 0;     // with a time of the case
  std::size_t failed = 0, unknown = 0;
  double median_ns = 0;  // of the launches' medians; NaN without any
  std::string outcome;   // "pass", or the most frequent other one
};

struct CaseComparison {
  std::string program, name, backend;
  int ranks = 0;
  Work work;
  Change change = Change::kMissing;
  OutcomeChange outcome_change = OutcomeChange::kNone;
  SideOfCase base, candidate;
  Effect95 effect;      // of the candidate's time; NaN without times
  double p = 1, q = 1;  // two-sided, alone and corrected
  double min_effect = 0;
  std::string why;      // in words
  std::string resolve;  // what would resolve an ambiguity or bring what is missing
  std::vector<RankChange> slower_ranks;
  // Whether the change of outcome is all that is to say: it fails now, or the base always failed
  // and so has no time that the candidate's could be slower than.
  bool OutcomeSaysAll() const;
};

struct LaunchComparison {
  std::vector<CaseComparison> cases;  // what needs attention first
  std::vector<Difference> differences;
  std::size_t base_launches = 0, candidate_launches = 0;
  std::size_t tests = 0;  // that the p-values are corrected for
  bool interleaved = true;
  double drift = 0;                // the allowance that was made
  std::vector<std::string> notes;  // files that were passed over
  std::string headline;
  ExitCode exit_code = ExitCode::kInconclusive;  // 0, 5 (slower, or a worse outcome) or 3
  // Cases with this change; not those of which a change of outcome says all (OutcomeSaysAll).
  std::size_t Count(Change change) const;
};

// `notes` name what could not be read: then the comparison cannot pass.
LaunchComparison Compare(std::span<const Launch> base, std::span<const Launch> candidate,
                         const CompareOptions& options, std::vector<std::string> notes = {});

// Whether drift of the machine meets both sides alike: in order of time, the launches of one side
// lie neither mostly before those of the other, nor in few blocks. A lone launch counts as
// interleaved: nothing is decided from it anyway.
bool AreInterleaved(std::span<const std::string> base_times,
                    std::span<const std::string> candidate_times);

}  // namespace lockstep::results::compare
