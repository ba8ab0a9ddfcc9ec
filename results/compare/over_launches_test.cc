// Literal launches: what is known of their cases, and the first line.
#include "results/compare/over_launches.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/verdict/outcome.h"
#include "results/compare/print.h"

namespace lockstep::results::compare {
namespace {

using verdict::Verdict;

// With a case for each time; a negative time was not measured.
Launch LaunchOf(const std::vector<double>& times, Verdict verdict = Verdict::kPass) {
  Launch launch;
  launch.program = "bench_allreduce";
  launch.verdict = verdict;
  launch.outcome = verdict == Verdict::kPass ? "pass" : "fail: rank_stopped; rank 1 stopped";
  for (std::size_t i = 0; i < times.size(); ++i) {
    CaseFigures figures;
    figures.name = "case:" + std::to_string(i);
    figures.backend = "mpi";
    figures.ranks = 2;
    figures.verdict = times[i] < 0 ? verdict : Verdict::kPass;
    figures.outcome = times[i] < 0 ? launch.outcome : "pass";
    figures.median_ns = times[i] < 0 ? std::numeric_limits<double>::quiet_NaN() : times[i];
    launch.cases.push_back(figures);
  }
  return launch;
}

TEST(OverLaunchesTest, EachLaunchCountsOnce) {
  std::vector<Launch> launches;
  for (int i = 1; i <= 8; ++i) launches.push_back(LaunchOf({1000.0 * i, 500}));
  const LaunchSummary summary = SummarizeLaunches(launches, 8);
  ASSERT_EQ(summary.cases.size(), 2u);
  EXPECT_EQ(summary.cases[0].interval.median, 4500);
  EXPECT_NEAR(summary.cases[0].interval.low, 1935.6, 0.1);
  EXPECT_EQ(summary.cases[0].lowest_ns, 1000);
  EXPECT_EQ(summary.cases[0].highest_ns, 8000);
  EXPECT_EQ(summary.exit_code, ExitCode::kPass);
  EXPECT_EQ(summary.headline,
            "PASS: 8 launches of bench_allreduce; the median of each case is known to 57 % over "
            "launches");
  EXPECT_NE(FormatTable(summary).find("case    median  +-%  lowest  highest  launches  outcome\n"
                                      "case:0  4.5 us   57    1 us     8 us         8  pass\n"
                                      "case:1  500 ns  0.0  500 ns   500 ns         8  pass\n"),
            std::string::npos)
      << FormatTable(summary);
}

TEST(OverLaunchesTest, CasesOfSeveralProgramsAndBackendsAreToldApart) {
  std::vector<Launch> launches = {LaunchOf({1000}), LaunchOf({2000}), LaunchOf({3000})};
  launches[1].program = "bench_barrier";
  launches[2].cases.front().backend = "gloo";
  const LaunchSummary summary = SummarizeLaunches(launches, 3);
  ASSERT_EQ(summary.cases.size(), 3u);
  EXPECT_TRUE(
      summary.headline.starts_with("PASS: 3 launches of bench_allreduce and bench_barrier; "))
      << summary.headline;
  const std::string table = FormatTable(summary);
  for (const char* name : {"bench_allreduce case:0 (mpi x 2) ", "bench_barrier case:0 (mpi x 2) ",
                           "bench_allreduce case:0 (gloo x 2) "}) {
    EXPECT_NE(table.find(name), std::string::npos) << table;
  }
}

TEST(OverLaunchesTest, AFailureIsTheFirstWord) {
  const LaunchSummary summary =
      SummarizeLaunches(std::vector{LaunchOf({10}), LaunchOf({-1}, Verdict::kFail)}, 2);
  EXPECT_EQ(summary.exit_code, ExitCode::kFailed);
  EXPECT_EQ(summary.headline,
            "FAIL: 1 of 2 launches of bench_allreduce did not pass; the first: fail: rank_stopped; "
            "rank 1 stopped");
  EXPECT_EQ(summary.cases[0].timed, 1u);
  EXPECT_EQ(summary.cases[0].launches, 2u);
  EXPECT_EQ(summary.cases[0].outcome, "fail: rank_stopped; rank 1 stopped");
}

TEST(OverLaunchesTest, LaunchesThatAreMissingDecideNothing) {
  const LaunchSummary fewer = SummarizeLaunches(std::vector{LaunchOf({10})}, 8);
  EXPECT_EQ(fewer.exit_code, ExitCode::kInconclusive);
  EXPECT_EQ(fewer.headline,
            "INCONCLUSIVE: 1 of 8 launches of bench_allreduce left a file that can be read");
  const LaunchSummary unknown =
      SummarizeLaunches(std::vector{LaunchOf({-1}, Verdict::kUnknown)}, 1);
  EXPECT_EQ(unknown.exit_code, ExitCode::kInconclusive);
}

}  // namespace
}  // namespace lockstep::results::compare
