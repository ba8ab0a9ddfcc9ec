// What of a run is compared with other runs: one figure a launch and case. Pure.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/verdict/outcome.h"
#include "results/compare/planned.h"
#include "results/store/run.h"

namespace lockstep::results::compare {

// How far every rank is behind its peers: median over iterations of its value less the median of
// the other ranks' in the same iteration, so that what meets all ranks alike cancels. Of stamps on
// the common clock, of durations, or of a part of a step. Where the plan has a visit counted by its
// mean, because its iterations are not alike, visits stand for iterations.
struct RankExcess {
  std::string what;        // "leaves later", "takes longer", "load_ns longer"
  std::vector<double> ns;  // by rank
};

// A figure that is not there.
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct CaseFigures {
  std::string name;
  std::string backend = {};
  int ranks = 0;
  // Of the summary, the median over repetitions; NaN: failed, or not measured.
  double median_ns = kNan;
  std::vector<RankExcess> by_rank = {};  // of the first repetition; none without samples
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  std::string outcome;    // "pass", "fail: collective_mismatch; rank 1 hung"
  bool is_trial = false;  // of stress: it has an outcome and no time
};

// One run file.
struct Launch {
  std::string path;
  std::string id;
  std::string program;                                    // "bench_allreduce"
  std::string started_at;                                 // UTC, ISO 8601: sorts by time
  verdict::Verdict verdict = verdict::Verdict::kUnknown;  // of the launch as a whole
  std::string outcome;
  // Environment, command, plan, and kLockstepFact.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::pair<std::string, double>> floors;  // of the machine, measured in this run
  Planned planned = {};
  std::vector<CaseFigures> cases;  // a case once, whatever its repetitions
};

// The fact that tells the version of Lockstep, which no machine has by itself.
inline constexpr const char* kLockstepFact = "software/lockstep";

// "" where the launch has none of that name.
std::string_view FactOf(const Launch& launch, std::string_view fact);

bool HasTime(const Launch& launch);  // of any case

std::vector<double> Logs(std::vector<double> values);

Launch FiguresOf(const store::Run& run, std::string path);

// "pass", or the verdict, its causes and the ranks that did not finish.
std::string OutcomeOf(const verdict::Judgement& judgement);

}  // namespace lockstep::results::compare
