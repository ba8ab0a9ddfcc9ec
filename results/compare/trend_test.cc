// Made-up nights of one machine: what makes a trend a regression, and what keeps it from passing.
#include "results/compare/trend.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
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
      launch.facts = {{"ranks/0/host", "node1"}, {"ranks/1/host", "node1"}};
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

// Three launches in the newest night, of which the last one fails with "other".
std::vector<Launch> WithAFailure(double other_ns) {
  std::vector<Launch> launches = Nights({{12, other_ns}});
  for (int i = 0; i < 2; ++i) {
    launches.push_back(launches.back());
    launches.back().id += "b";
    launches.back().started_at = fmt::format("2026-11-12T01:{:02}:00Z", 10 * (i + 1));
  }
  CaseFigures& failed = launches.back().cases.back();
  failed.name = "other";
  failed.median_ns = kNan;
  failed.verdict = launches.back().verdict = verdict::Verdict::kFail;
  failed.outcome = launches.back().outcome = "fail: data_corrupt";
  return launches;
}

TEST(TrendTest, AFailureInTheNewestNightDoesNotPassBesideGoodLaunches) {
  std::vector<Launch> launches = WithAFailure(100);
  const Trend trend = FindTrend(launches, {});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive);
  EXPECT_NE(trend.headline.find(", 1 failed in the newest night"), std::string::npos);
  EXPECT_TRUE(trend.failures.empty());
  for (const std::string& form : {FormatTrendTable(trend), FormatTrendMarkdown(trend),
                                  FormatTrendJson(trend), FormatTrendJUnit(trend)}) {
    EXPECT_NE(form.find("fail: data_corrupt in 1 of 3 launches"), std::string::npos) << form;
  }
  TrendOptions usual;
  usual.cases = "usual";
  EXPECT_EQ(FindTrend(launches, usual).exit_code, ExitCode::kPass) << "of another case";
  // A launch without its cases, and one of no verdict.
  launches.back().cases.clear();
  EXPECT_NE(FindTrend(launches, {}).headline.find(", 2 failed"), std::string::npos);
  launches.back().verdict = verdict::Verdict::kUnknown;
  EXPECT_NE(FindTrend(launches, {}).headline.find(", 2 failed"), std::string::npos);
  // Time that ran out is none.
  launches = WithAFailure(100);
  launches.back().verdict = launches.back().cases.back().verdict = verdict::Verdict::kUnknown;
  EXPECT_EQ(FindTrend(launches, {}).exit_code, ExitCode::kPass);
  // The next night tells how it is now.
  launches = WithAFailure(100);
  launches.push_back(launches[0]);
  launches.back().started_at = "2026-11-13T01:00:00Z";
  EXPECT_EQ(FindTrend(launches, {}).exit_code, ExitCode::kPass);
}

TEST(TrendTest, ACaseThatNeverHadATimeDoesNotPass) {
  std::vector<Launch> launches = WithAFailure(0);
  launches.back().cases = {CaseOf("usual", 500), launches.back().cases.back()};
  for (const verdict::Verdict verdict : {verdict::Verdict::kFail, verdict::Verdict::kUnknown}) {
    launches.back().verdict = launches.back().cases.back().verdict = verdict;
    const Trend trend = FindTrend(launches, {});
    EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive);
    EXPECT_EQ(trend.failures, std::vector<std::string>{
                                  "bench_allreduce other (mpi x 2) on node1: never had a time; "
                                  "in the newest night: fail: data_corrupt"});
  }
  launches.back().cases.back().is_trial = true;
  EXPECT_EQ(FindTrend(launches, {}).exit_code, ExitCode::kPass) << "a trial of stress has no time";
}

TEST(TrendTest, ALaunchThatFailsBesideItsCasesDoesNotPass) {
  std::vector<Launch> launches = WithAFailure(100);
  launches.back().cases.pop_back();
  const Trend trend = FindTrend(launches, {});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive);
  ASSERT_EQ(trend.failures.size(), 1u);
  EXPECT_NE(trend.failures[0].find("bench_allreduce on node1: fail: data_corrupt"),
            std::string::npos);
  // Another program that has no case at all.
  launches.back().program = "bench_barrier";
  launches.back().cases.clear();
  launches.back().planned.known = true;
  EXPECT_EQ(FindTrend(launches, {}).failures.size(), 1u);
}

// So many more nights, each with a launch like the last one but for what `change` does to it.
template <typename Change>
void AddNights(std::vector<Launch>& launches, int nights, const Change& change) {
  for (int i = 0; i < nights; ++i) {
    Launch launch = launches.back();
    launch.started_at = fmt::format("2026-11-{:02}T01:00:00Z", launches.size() + 1);
    launch.id = launch.started_at;
    change(launch);
    launches.push_back(std::move(launch));
  }
}

void SetPlan(Launch& launch, const std::string& command, const std::set<std::string>& cases) {
  launch.facts.push_back({"command", command});
  launch.facts.push_back({"plan", fmt::format("{}", fmt::join(cases, ","))});
  launch.planned = {true, "mpi", 2, cases, {}, false};
}

std::vector<Launch> PlannedNights(const std::string& command) {
  std::vector<Launch> launches = Nights({{12, 100}});
  for (Launch& launch : launches) SetPlan(launch, command, {"usual", "other"});
  return launches;
}

TEST(TrendTest, ACaseThatANewerPlanLeavesOutIsNotLost) {
  const auto later = [](const std::string& command, const std::set<std::string>& cases) {
    std::vector<Launch> launches = PlannedNights("bench -b 8");
    AddNights(launches, 7, [&](Launch& launch) {
      launch.facts = {{"ranks/0/host", "node1"}, {"ranks/1/host", "node1"}};
      SetPlan(launch, command, cases);
      std::erase_if(launch.cases, [](const CaseFigures& one) { return one.name == "other"; });
    });
    return FindTrend(launches, {});
  };
  const Trend renamed = later("bench -b 8", {"usual", "another"});
  EXPECT_EQ(renamed.exit_code, ExitCode::kPass) << renamed.headline;
  EXPECT_NE(FormatTrendTable(renamed).find("other (mpi x 2) on node1: not to be measured since "
                                           "2026-11-13"),
            std::string::npos)
      << FormatTrendTable(renamed);
  EXPECT_EQ(later("bench -b 16", {"usual"}).exit_code, ExitCode::kPass);
  EXPECT_EQ(later("bench -b 8", {"usual", "other"}).exit_code, ExitCode::kInconclusive)
      << "it was to be measured";
  EXPECT_EQ(later("bench -b 16", {"another"}).exit_code, ExitCode::kInconclusive)
      << "that may be another step, and the one that has the case leave no file any more";
}

TEST(TrendTest, ACaseIsLostWhereOnlyAnotherStepStillRuns) {
  std::vector<Launch> launches = PlannedNights("bench -b 8");
  for (std::size_t i = 0; i < 12; ++i) {  // the other step shares a case, and ran before
    Launch launch = launches[i];
    launch.id += "b";
    launch.facts = {{"ranks/0/host", "node1"}, {"ranks/1/host", "node1"}};
    SetPlan(launch, "bench -b 16", {"usual"});
    launch.cases.resize(1);
    launches.push_back(launch);
  }
  AddNights(launches, 7, [&](Launch& launch) {
    launch.started_at = fmt::format("2026-11-{:02}T01:00:00Z", launches.size() - 11);
  });
  const Trend trend = FindTrend(launches, {});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive) << trend.headline;
}

void Fail(Launch& launch) {
  launch.verdict = verdict::Verdict::kFail;
  launch.outcome = "fail: agent_lost";
  launch.cases.clear();
  std::erase_if(launch.facts, [](const auto& fact) { return fact.first.starts_with("ranks/"); });
}

TEST(TrendTest, AFailedLaunchWithoutHostsIsOfTheOnlyMachineThatItCanBeOf) {
  std::vector<Launch> launches = PlannedNights("bench");
  AddNights(launches, 1, Fail);
  const Trend trend = FindTrend(launches, {});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive) << trend.headline;
  EXPECT_NE(FormatTrendTable(trend).find("on node1: no time in the newest night: fail: agent_lost "
                                         "(the file does not name its hosts; "),
            std::string::npos)
      << FormatTrendTable(trend);

  // Of two machines neither folder nor plan tells.
  for (std::size_t i = 0; i < 13; ++i) {
    launches[i].path = fmt::format("nights/node1/{}.h5", i);
    if (i == 12) break;
    Launch other = launches[i];
    other.path = fmt::format("nights/node2/{}.h5", i);
    other.facts[0].second = other.facts[1].second = "node2";
    launches.push_back(other);
  }
  const Trend by_folder = FindTrend(launches, {});
  EXPECT_NE(by_folder.headline.find(", 2 without a time now"), std::string::npos);
  EXPECT_TRUE(by_folder.failures.empty());
  launches[12].path = "nights/failed.h5";
  const Trend either = FindTrend(launches, {});
  EXPECT_EQ(either.exit_code, ExitCode::kInconclusive);
  ASSERT_EQ(either.failures.size(), 1u);
  EXPECT_NE(either.failures[0].find("it may be of node1, node2"), std::string::npos);
  // Later launches of both tell how they are now.
  for (const char* host : {"node1", "node2"}) {
    Launch later = launches[11];
    later.started_at = "2026-11-14T01:00:00Z";
    later.facts[0].second = later.facts[1].second = host;
    launches.push_back(later);
  }
  EXPECT_EQ(FindTrend(launches, {}).exit_code, ExitCode::kPass);
}

TEST(TrendTest, AMachineThatNeverHadATimeDoesNotPass) {
  std::vector<Launch> launches = PlannedNights("bench");
  AddNights(launches, 1, [](Launch& launch) {
    Fail(launch);
    launch.facts.push_back({"ranks/0/host", "node2"});
    launch.facts.push_back({"ranks/1/host", "node2"});
  });
  const Trend trend = FindTrend(launches, {});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive);
  ASSERT_EQ(trend.failures.size(), 1u);
  EXPECT_NE(trend.failures[0].find("node2 never had a time"), std::string::npos);
}

TEST(TrendTest, AMachineThatIsLaunchedNoMoreIsNamed) {
  const auto trend_of = [](std::size_t nights) {
    std::vector<Launch> launches = Nights({{20, 100}});
    for (Launch& launch : Nights({{20, 100}})) {
      if (launches.size() == 20 + nights) break;
      launch.facts = {{"ranks/0/host", "node2"}, {"ranks/1/host", "node2"}};
      launches.push_back(launch);
    }
    return FindTrend(launches, {});
  };
  EXPECT_TRUE(trend_of(14).absent.empty()) << "not every machine is launched every night";
  const Trend trend = trend_of(13);
  EXPECT_EQ(trend.exit_code, ExitCode::kPass) << "nobody tells whether it should be";
  const std::string text = "node2: launched last on 2026-11-13; node1 was in 7 nights since";
  EXPECT_EQ(trend.absent, std::vector<std::string>{text});
  EXPECT_NE(trend.headline.find(", 1 machine launched no more"), std::string::npos);
  for (const std::string& form : {FormatTrendTable(trend), FormatTrendMarkdown(trend),
                                  FormatTrendJson(trend), FormatTrendJUnit(trend)}) {
    EXPECT_NE(form.find(text), std::string::npos) << form;
  }
}

TEST(TrendTest, AFileThatWasNotReadDoesNotPass) {
  const Trend trend = FindTrend(Nights({{12, 100}}), {}, {"night13.h5: truncated"});
  EXPECT_EQ(trend.exit_code, ExitCode::kInconclusive);
  EXPECT_NE(trend.headline.find(", 1 file passed over"), std::string::npos) << trend.headline;
  std::vector<Launch> launches = Nights({{12, 100}});
  launches.back().started_at = "lately";
  const Trend undated = FindTrend(launches, {});
  EXPECT_EQ(undated.exit_code, ExitCode::kInconclusive);
  EXPECT_NE(undated.headline.find(", 1 file passed over"), std::string::npos) << undated.headline;
}

}  // namespace
}  // namespace lockstep::results::compare
