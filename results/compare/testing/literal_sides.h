// Literal launches of two sides, each of one case.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "results/compare/compare.h"

namespace lockstep::results::compare {

// A launch with one case; launches that are compared are made in turn, so they interleave.
inline Launch LaunchWith(double median_ns, verdict::Verdict verdict = verdict::Verdict::kPass,
                         const std::string& outcome = "pass") {
  static int minute = 0;
  Launch launch;
  launch.id = fmt::format("{:08x}", ++minute);
  launch.started_at = fmt::format("2026-11-{:02}T{:02}:{:02}:00Z", 1 + minute / 1440,
                                  minute / 60 % 24, minute % 60);
  launch.program = "bench_allreduce";
  launch.verdict = verdict::Verdict::kPass;
  CaseFigures figures;
  figures.name = "case";
  figures.backend = "mpi";
  figures.ranks = 4;
  figures.median_ns = median_ns;
  figures.verdict = verdict;
  figures.outcome = outcome;
  launch.cases = {figures};
  return launch;
}

struct Sides {
  std::vector<Launch> base, candidate;
};

inline Sides SidesOf(int launches, double base_ns, double candidate_ns) {
  Sides sides;
  for (int i = 0; i < launches; ++i) {
    const double noise = 1 + 0.002 * (i % 4);
    sides.base.push_back(LaunchWith(base_ns * noise));
    sides.candidate.push_back(LaunchWith(candidate_ns * noise));
  }
  return sides;
}

inline CaseComparison OnlyCase(const Sides& sides, const CompareOptions& options = {}) {
  const LaunchComparison comparison = Compare(sides.base, sides.candidate, options);
  EXPECT_EQ(comparison.cases.size(), 1u);
  return comparison.cases.front();
}

}  // namespace lockstep::results::compare
