// The verdict on one case, from its shifts and outcomes. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/stats/two_samples.h"
#include "results/compare/case_groups.h"
#include "results/compare/compare.h"

namespace lockstep::results::compare {

// A rank that takes longer than it did, beside its peers.
struct RankShift {
  int rank = 0;
  std::string what;    // of the RankExcess
  stats::Shift shift;  // of the rank's excess, in parts of the case's time
};

// A case with all that its verdict needs but the correction for many tests.
struct CaseEvidence {
  CaseGroup group;
  bool timed = false;  // both sides have a time
  bool interleaved = true;
  double allowance = 0;  // of drift, in log time
  stats::Shift shift;    // of log time
  std::vector<RankShift> rank_shifts;
  std::vector<double> rank_q;  // corrected p-values of them, two-sided
  double q = 1;                // of the case
};

CaseEvidence EvidenceOf(const CaseGroup& group, const CompareOptions& options);

double TwoSided(const stats::Shift& shift);

// `tests`: how many p-values were corrected together.
CaseComparison JudgeCase(const CaseEvidence& evidence, double min_effect, std::size_t tests);

}  // namespace lockstep::results::compare
