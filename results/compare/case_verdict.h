// The verdict on one case, from its shifts and outcomes. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "core/stats/two_samples.h"
#include "results/compare/case_groups.h"
#include "results/compare/compare.h"
#include "results/compare/rank_shifts.h"

namespace lockstep::results::compare {

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
