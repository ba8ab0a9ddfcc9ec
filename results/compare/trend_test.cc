// Made-up nights of one machine: what makes a trend a regression, and what keeps it from passing.
#include "results/compare/trend.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace lockstep::results::compare {
namespace {

CaseFigures CaseOf(const std::string& name, double median_ns) {
  return {.name = name,
          .backend = "mpi",
          .ranks = 2,
          .median_ns = median_ns,
          .verdict = verdict::Verdict::kPass,
          .outcome = "pass"};
}

// A launch a night that measures "usual", and "other" in so many of `levels` (nights, ns).
std::vector<Launch> Nights(const std::vector<std::pair<int, double>>& levels) {
  std::vector<Launch> launches;
  for (const auto& [nights, ns] : levels) {
    for (int i = 0; i < nights; ++i) {
      Launch& launch = launches.emplace_back();
      const std::size_t night = launches.size();
      launch.id = fmt::format("{}", night);
      launch.started_at = fmt::format("2026-11-{:02}T01:00:00Z", night);
      launch.program = "bench_allreduce";
      launch.verdict = verdict::Verdict::kPass;
      launch.facts = {{"ranks/0/host", "node1"}};
      const double noise = 1 + 0.001 * static_cast<double>(night * 7 % 5);
      launch.cases = {CaseOf("usual", 500 * noise)};
      if (ns > 0) launch.cases.push_back(CaseOf("other", ns * noise));
    }
  }
  return launches;
}

TEST(TrendTest, TheLevelNowIsComparedWithThoseThatWereLeftRecently) {
  const Trend twice = FindTrend(Nights({{18, 100}, {4, 130}, {3, 123.5}}), {});
  EXPECT_EQ(twice.exit_code, ExitCode::kRegression) << twice.headline;
  const Series& other = twice.series[0].name == "other" ? twice.series[0] : twice.series[1];
  ASSERT_EQ(other.changes.size(), 2u);
  ASSERT_TRUE(other.slower);
  EXPECT_NEAR(other.slower->effect, 0.235, 0.005);
  EXPECT_NE(FormatTrendJUnit(twice).find(" % since 2026-11-19 ("), std::string::npos);

  const auto code = [](const std::vector<std::pair<int, double>>& levels) {
    return FindTrend(Nights(levels), {}).exit_code;
  };
  EXPECT_EQ(code({{18, 100}, {4, 130}, {3, 100}}), ExitCode::kPass) << "as it was";
  EXPECT_EQ(code({{12, 100}, {10, 130}, {3, 123.5}}), ExitCode::kPass) << "long known";
  EXPECT_EQ(code({{18, 100}, {4, 70}, {3, 90}}), ExitCode::kRegression) << "partly lost again";
}

TEST(TrendTest, ACaseThatLostItsTimesDoesNotPass) {
  const auto trend_of = [](std::vector<Launch> launches) { return FindTrend(launches, {}); };
  // Not measured every night, but within the recent ones.
  EXPECT_EQ(trend_of(Nights({{12, 100}, {6, 0}})).exit_code, ExitCode::kPass);
  const Trend absent = trend_of(Nights({{12, 100}, {7, 0}}));
  EXPECT_EQ(absent.exit_code, ExitCode::kInconclusive);
  EXPECT_NE(absent.headline.find(", 1 without a time now"), std::string::npos) << absent.headline;
  EXPECT_NE(FormatTrendTable(absent).find("(mpi x 2) on node1: no time in the newest 7 nights"),
            std::string::npos);
  EXPECT_NE(FormatTrendJUnit(absent).find("errors=\"2\""), std::string::npos);

  std::vector<Launch> hung = Nights({{13, 100}});
  hung.back().cases[1].median_ns = kNan;
  hung.back().cases[1].outcome = "fail: rank 1 hung";
  EXPECT_NE(FormatTrendTable(trend_of(hung)).find("no time in the newest night: fail: rank 1 hung"),
            std::string::npos);
  hung.back().cases.clear();
  hung.back().verdict = verdict::Verdict::kFail;
  hung.back().outcome = "fail: init_failure";
  EXPECT_NE(trend_of(hung).headline.find(", 2 without a time now"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::results::compare
