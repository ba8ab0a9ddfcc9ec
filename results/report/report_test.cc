// Compares every text report of the literal runs with golden files, byte for byte. Single
// properties, such as printable lines, are tested on changed runs.
#include "results/report/report.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "results/report/testing/literal_run.h"

namespace lockstep::results::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Golden(const std::string& name) {
  std::ifstream file("results/report/golden/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Table, OfAPassingRun) { EXPECT_EQ(FormatTable(PassingRun()), Golden("table_pass.txt")); }
TEST(Table, OfAFailingRun) { EXPECT_EQ(FormatTable(FailingRun()), Golden("table_fail.txt")); }
TEST(Table, OfACorruptRun) { EXPECT_EQ(FormatTable(CorruptRun()), Golden("table_corrupt.txt")); }

TEST(Table, OfStepsWithParts) { EXPECT_EQ(FormatTable(StepsRun()), Golden("table_steps.txt")); }

TEST(Table, WithAllColumns) {
  EXPECT_EQ(FormatTable(FailingRun(), Columns::kAll), Golden("table_wide.txt"));
  EXPECT_EQ(FormatTable(StepsRun(), Columns::kAll), Golden("table_steps_wide.txt"));
}

// A model's buckets at two caps, of which a rank stopped in the last.
store::Run LongNamesRun() {
  store::Run run = PassingRun();
  run.cases.resize(1);
  run.cases[0].name = "all_reduce/f32/sum/bert_base/cap:100/bucket:0";
  run.cases[0].bytes = 438'000'000;
  run.cases[0].summary.stopped_by = "time_budget";
  for (const char* name :
       {"100/bucket:1", "100/sequence", "25/bucket:0", "25/sequence", "25/bucket:1"}) {
    run.cases.push_back(run.cases[0]);
    run.cases.back().name = std::string("all_reduce/f32/sum/bert_base/cap:") + name;
  }
  run.cases.back().judgement = FailingRun().judgement;
  run.cases.back().judgement.outcomes[1].outcome = verdict::Outcome::kStopped;
  return run;
}

// Of what people read in columns; sentences wrap by themselves.
void ExpectNarrow(const store::Run& run) {
  bool sentences = false;
  const std::vector<std::string> lines = Lines(FormatTable(run));
  for (std::size_t i = 2; i < lines.size(); ++i) {
    if (lines[i].empty()) sentences = false;
    sentences = sentences || lines[i].starts_with("Findings") ||
                lines[i].starts_with("Ranks that") || lines[i].starts_with("Wrong") ||
                lines[i].starts_with("Recommendation");
    if (sentences) continue;
    EXPECT_LE(lines[i].size(), kNarrow) << lines[i];
  }
}

TEST(Table, FitsATerminal) {
  for (const auto& run : {PassingRun(), FailingRun(), CorruptRun(), StepsRun(), LongNamesRun()}) {
    ExpectNarrow(run);
  }
  auto run = LongNamesRun();
  for (store::CaseRecord& record : run.cases) record.name += "/" + std::string(50, 'x');
  ExpectNarrow(run);
  run = StepsRun();
  for (store::CaseRecord& record : run.cases) record.name += "/find_unused/hook:bf16/no_buffers";
  ExpectNarrow(run);
}

TEST(Table, LongNamesAreGrouped) {
  const auto lines = Lines(FormatTable(LongNamesRun()));
  EXPECT_EQ(lines[3], "All names begin with all_reduce/f32/sum/bert_base/");
  EXPECT_THAT(lines[4], StartsWith("case "));
  auto run = LongNamesRun();
  for (store::CaseRecord& record : run.cases) record.name.insert(29, "find_unused_parameters:");
  const auto grouped = Lines(FormatTable(run));
  EXPECT_EQ(grouped[6], "find_unused_parameters:cap:100/");
  EXPECT_THAT(grouped[7], StartsWith("  bucket:0  417.7 MiB "));
  EXPECT_THAT(grouped[9], StartsWith("  sequence  417.7 MiB "));
  EXPECT_EQ(grouped[10], "find_unused_parameters:cap:25/");
  EXPECT_THAT(grouped[13], testing::EndsWith("  FAIL, rank 1 stopped"));
}

// Of every figure: none is there.
TEST(Table, WhatIsNotANumberIsADash) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto run : {PassingRun(), StepsRun()}) {
    for (auto& [name, value] : run.floors) value = nan;
    for (store::CaseRecord& record : run.cases) {
      store::Summary& s = record.summary;
      for (double* figure : {&s.median_ns, &s.interval_low_ns, &s.interval_high_ns, &s.min_ns,
                             &s.p99_ns, &s.max_ns, &s.rank_average_median_ns, &s.algorithm_gbps,
                             &s.bus_gbps, &s.floor_ns, &s.percent_of_limit}) {
        *figure = nan;
      }
      for (store::Part& part : record.parts) part.median = part.interval_low = nan;
    }
    for (store::OptionEffect& e : run.effects) e.ratio = e.interval_low = e.interval_high = nan;
    for (const Columns columns : {Columns::kFew, Columns::kAll}) {
      const std::string table = FormatTable(run, columns);
      EXPECT_THAT(table, Not(testing::ContainsRegex("\\b(nan|inf)\\b"))) << table;
    }
    EXPECT_THAT(FormatCsv(run), Not(testing::ContainsRegex("\\b(nan|inf)\\b")));
  }
}

TEST(Table, WhyThereIsNoFloor) {
  auto run = PassingRun();
  run.environment = {{"ranks/0/boot_id", "a"}, {"ranks/0/cpus", "0,1"},  {"ranks/1/boot_id", "a"},
                     {"ranks/1/cpus", "0,1"},  {"ranks/2/boot_id", "a"}, {"ranks/2/cpus", "0,1"}};
  run.floors.back().second = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(FormatTable(run),
              HasSubstr("sum 6.25 GB/s\n  (not measured: cache line: 3 ranks on 2 proce"));
  for (store::CaseRecord& record : run.cases) record.summary.floor_ns = 0;
  EXPECT_THAT(FormatTable(run), HasSubstr("none: 3 ranks on 2 processors, so no floors\n"));
  run.environment.resize(4);
  EXPECT_THAT(FormatTable(run), HasSubstr("none: the host was too busy to measure its rates\n"));
  run.cases[0].backend = "null";
  EXPECT_THAT(FormatTable(run), HasSubstr("none: the backend null moves no data\n"));
  run.cases[0].device = "cuda";
  EXPECT_THAT(FormatTable(run), HasSubstr("none: the data is not in the host's memory\n"));
}

TEST(Table, LoadsCountByTheMeansOfVisits) {
  auto run = StepsRun();
  EXPECT_THAT(FormatTable(run), HasSubstr("\nstep: of the slowest rank, over iterations; +-"));
  run.cases[0].parts[0].over = "mean";
  EXPECT_THAT(FormatTable(run), HasSubstr("\nstep: of the slowest rank, over means of visits; +-"));
}

// Ranks that are bound cannot move, and so nothing is said of why.
TEST(Table, ThatCacheLinesVariedIsSaidWithoutACause) {
  auto run = PassingRun();
  run.floors.insert(run.floors.end(), {{"line_round_trip_least_ns", 64},
                                       {"line_round_trip_most_ns", 298},
                                       {"placement_changed", 1}});
  const std::string table = FormatTable(run, Columns::kAll);
  EXPECT_THAT(table, HasSubstr("  (a cache line took 64 to 298 ns meanwhile: each round has its"));
  EXPECT_THAT(table, Not(HasSubstr("moved")));
}

TEST(Table, ACaseThatABudgetCutShort) {
  auto run = PassingRun();
  run.cases[0].summary.stopped_by = "cut_short";
  run.cases[1].summary.stopped_by = "iterations";
  EXPECT_THAT(Lines(FormatTable(run))[5], testing::EndsWith("  cut short  pass"));
  EXPECT_THAT(Lines(FormatTable(run))[6], testing::EndsWith("  pass"));
}

TEST(Table, OfLinks) { EXPECT_EQ(FormatTable(LinksRun()), Golden("table_links.txt")); }

TEST(Table, OfManyLinksIsShort) {
  auto run = LinksRun();
  run.links->pairs.clear();
  for (int a = 0; a < 64; ++a) {
    for (int b = a + 1; b < 64; ++b) {
      store::LinkPair& pair = run.links->pairs.emplace_back();
      pair.a = a;
      pair.b = b;
      pair.latency_ns = 1000 + a;
      pair.forward_gbps = pair.back_gbps = 1;
      pair.standing = a == 0 ? "slow_host" : "usual";
    }
  }
  run.links->all_at_once_gbps.assign(64, 2.0);
  const std::string table = FormatTable(run);
  EXPECT_LT(Lines(table).size(), 40u);
  EXPECT_THAT(table, HasSubstr("2016 pairs"));
  EXPECT_THAT(table, HasSubstr("0 node1 - 1 node2"));
  EXPECT_THAT(table, HasSubstr("... and 51 more"));
}

TEST(Table, CollectivesAndStepsHaveATableEach) {
  auto run = PassingRun();
  run.cases.push_back(StepsRun().cases[0]);
  const std::string table = FormatTable(run);
  EXPECT_THAT(table, HasSubstr("busbw"));
  EXPECT_THAT(table, HasSubstr("exposed"));
  EXPECT_EQ(table.find("ddp_step/resnet50"), table.rfind("ddp_step/resnet50"));
}

store::Run TwoHostsRun() {
  store::Run run = PassingRun();
  run.cases.resize(2);
  run.cases[0].arrivals = {400, 300, 24'100, 1, 0.6};
  run.cases[1].arrivals = {5.02e6, 16e6, 24'100, 1, 1};
  run.clocks = {{"node1", {0}, "reference"},
                {"node2", {1}, "estimated", 50.12, 0.5, 12'340, 1.0000213e9, 13e3, 31e3, 9, 72}};
  return run;
}

TEST(Clocks, OfTwoHostsAreALine) {
  EXPECT_EQ(FormatClocks(TwoHostsRun()),
            "clocks beside node1's: node2 +1.000021 s, drift +50.1 ppm, error 12.3 us\n");
  EXPECT_THAT(FormatTable(TwoHostsRun()), HasSubstr("\nclocks beside node1's: "));
  auto one = TwoHostsRun();
  one.clocks.resize(1);
  EXPECT_EQ(FormatClocks(one), "");
  EXPECT_THAT(FormatArrivals(one), HasSubstr("offset 0, error 0"));
}

TEST(Clocks, WhatIsNotKnownIsSaid) {
  auto run = TwoHostsRun();
  run.clocks[1].state = "unknown";
  EXPECT_THAT(FormatClocks(run), HasSubstr("node2 is not known"));
  run.clocks[1].state = "inconsistent";
  EXPECT_THAT(FormatClocks(run), HasSubstr("node2 was set, or stood still"));
  for (store::CaseRecord& record : run.cases) {
    record.arrivals->clock_error_ns = std::numeric_limits<double>::infinity();
  }
  EXPECT_THAT(FormatArrivals(run), testing::ContainsRegex("64MiB +[^ ]+ ms +- +- +- +-"));
}

TEST(Clocks, OfManyHostsTheWorstAreShown) {
  auto run = TwoHostsRun();
  for (int i = 3; i <= 1000; ++i) {
    run.clocks.push_back(run.clocks[1]);
    run.clocks.back().host = "node" + std::to_string(i);
    run.clocks.back().error_ns = i;
  }
  EXPECT_THAT(FormatClocks(run), HasSubstr("1's: node2 +"));
  EXPECT_THAT(FormatClocks(run), HasSubstr("991 more, error at most 993 ns"));
}

TEST(Arrivals, AreFiguresOnlyAboveTheErrorOfTheClocks) {
  const auto lines = Lines(FormatArrivals(TwoHostsRun()));
  EXPECT_THAT(lines[2], testing::ContainsRegex("all_reduce/8B .*< 24.5 us +< 24.4 us +24.1 us  -"));
  EXPECT_THAT(lines[3], testing::ContainsRegex("5.02 ms +16 ms +24.1 us  1 \\(100 %\\)"));
  EXPECT_THAT(FormatArrivals(PassingRun()), HasSubstr("no case was completed by two ranks"));
}

TEST(Table, OfARunWithoutCases) {
  EXPECT_THAT(FormatTable({}), HasSubstr("INCONCLUSIVE: 0 cases\n"));
  EXPECT_THAT(FormatTable({}), HasSubstr("No case was run.\n"));
}

TEST(Table, AnInterruptedRunSaysSoOnce) {
  const std::string table = FormatTable(InterruptedRun());
  EXPECT_THAT(table, StartsWith("INCONCLUSIVE: 1 of 5 cases measured before the run was ended; run "
                                "it again\n"));
  EXPECT_THAT(table, testing::ContainsRegex("all_reduce/64MiB .*  imprecise  unfinished\n"));
  EXPECT_THAT(table, HasSubstr("\nNot measured: 3 of 5 cases; no time left (1), not begun (2)\n"));
  for (const char* text : {"ended", "Not measured"}) {
    EXPECT_EQ(table.find(text), table.rfind(text)) << table;
  }
  for (const char* text : {"not_run", "interrupted", "incomplete", "barrier", "UNKNOWN"}) {
    EXPECT_THAT(table, Not(HasSubstr(text)));
  }
  store::Run failed = FailingRun();
  EXPECT_THAT(FormatTable(failed), testing::ContainsRegex("^FAIL: [^\n]* \\(incomplete\\)\n"));
}

TEST(Table, TheCommonBeginningOfLongNamesIsPrintedOnce) {
  auto run = PassingRun();
  run.cases.resize(2);
  const std::string folder(60, 'x');
  for (store::CaseRecord& record : run.cases)
    record.name = fmt::format("{}/{}", folder, record.name);
  const auto lines = Lines(FormatTable(run));
  EXPECT_EQ(lines[3], fmt::format("All names begin with {}/all_reduce/", folder));
  EXPECT_THAT(lines[6], StartsWith("8B "));
  EXPECT_THAT(lines[7], StartsWith("64MiB "));
}

TEST(Table, AFindingOfLaunchAndCaseIsShownOnce) {
  const std::string table = FormatTable(FailingRun());
  const std::size_t first = table.find("rank_killed (proved");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(table.find("rank_killed (proved", first + 1), std::string::npos);
}

TEST(Table, EveryLineIsPrintable) {
  auto run = CorruptRun();
  run.cases[0].judgement.findings[0].message = "two\nlines\x1b[31m";
  run.cases[0].judgement.findings[0].headline = verdict::Headline("two\nlines\x1b[31m");
  run.summary_line = "";
  EXPECT_THAT(FormatTable(run), Not(HasSubstr("\x1b")));
  EXPECT_THAT(FormatTable(run), HasSubstr("two\\nlines\\x1b[31m"));
  EXPECT_THAT(FormatTable(run), StartsWith("FAIL: two lines [31m\n"));
}

TEST(NcclTests, OfAPassingRun) {
  EXPECT_EQ(FormatNcclTests(PassingRun()), Golden("nccl_tests_pass.txt"));
}

// What a script that parses nccl-tests' output takes: 13 fields a line.
TEST(NcclTests, EveryLineHasItsThirteenFields) {
  for (const auto& run : {PassingRun(), FailingRun(), CorruptRun()}) {
    for (const std::string& line : Lines(FormatNcclTests(run))) {
      if (line[0] == '#') continue;
      std::istringstream fields(line);
      const std::vector<std::string> all{std::istream_iterator<std::string>(fields), {}};
      EXPECT_EQ(all.size(), 13u) << line;
    }
  }
}

TEST(NcclTests, WrongElementsFail) {
  EXPECT_THAT(FormatNcclTests(CorruptRun()), HasSubstr("# Out of bounds values : 2 FAILED\n"));
}

TEST(NcclTests, UncheckedIsNotOk) {
  auto run = CorruptRun();
  run.cases[0].summary.checked_elements = run.cases[0].summary.wrong_elements = 0;
  EXPECT_THAT(FormatNcclTests(run), HasSubstr("# Out of bounds values : N/A (not checked)\n"));
}

TEST(JsonLines, OneObjectACaseThenOneForTheRun) {
  const auto lines = Lines(FormatJsonLines(PassingRun()));
  ASSERT_EQ(lines.size(), 6u);
  const auto barrier = nlohmann::json::parse(lines[3]);
  EXPECT_EQ(barrier["record"], "case");
  EXPECT_EQ(barrier["run"], "1a2b3c4d");
  EXPECT_EQ(barrier["summary"]["median_ns"], 600.0);
  EXPECT_TRUE(barrier["summary"]["bus_gbps"].is_null());
  const auto run = nlohmann::json::parse(lines[5]);
  EXPECT_EQ(run["record"], "run");
  EXPECT_EQ(run["environment"]["host/0/kernel"], "6.1");
  EXPECT_EQ(run["seed"], 42);
}

TEST(JsonLines, OutcomesFindingsAndWrongResults) {
  const auto fail = nlohmann::json::parse(Lines(FormatJsonLines(FailingRun()))[1]);
  EXPECT_EQ(fail["judgement"]["verdict"], "fail");
  EXPECT_EQ(fail["judgement"]["outcomes"][1]["signal"], 9);
  EXPECT_EQ(fail["judgement"]["findings"][0]["culprits"][0], 1);
  const auto corrupt = nlohmann::json::parse(Lines(FormatJsonLines(CorruptRun()))[0]);
  EXPECT_EQ(corrupt["wrong"][0]["iteration"], 49);
}

TEST(JsonLines, SettingsPartsAndEffects) {
  const auto lines = Lines(FormatJsonLines(StepsRun()));
  ASSERT_EQ(lines.size(), 4u);
  const auto step = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(step["settings"]["bucket_cap_mb"], "10");
  EXPECT_EQ(step["parts"][2]["part"], "overlap");
  EXPECT_EQ(step["parts"][2]["median"], 0.75);
  const auto effect = nlohmann::json::parse(lines[2]);
  EXPECT_EQ(effect["record"], "effect");
  EXPECT_EQ(effect["case"], "ddp_step/resnet50/cap:10");
  EXPECT_EQ(effect["interval_low"], 1.2);
  EXPECT_THAT(nlohmann::json::parse(lines[3])["recommendation"].get<std::string>(),
              StartsWith("bucket_cap_mb=10: 1.25 times faster"));
}

TEST(JsonLines, BytesThatAreNoUtf8DoNotBreakTheLine) {
  auto run = PassingRun();
  run.environment = {{"variable", "\xff\xfe"}};
  EXPECT_TRUE(nlohmann::json::accept(Lines(FormatJsonLines(run)).back()));
}

TEST(Details, Environment) {
  EXPECT_EQ(FormatEnvironment(PassingRun()),
            "Environment\n  lockstep: 1.2.3 (1a2b3c4, modified)\n  mpi: 4.1.4\n  host/0\n"
            "    cpu_model: Some CPU\n    kernel: 6.1\n");
}

TEST(Details, HistoryShowsTheNewestEvents) {
  EXPECT_EQ(FormatHistory(FailingRun(), 10),
            "History\n"
            "  rank 1, lifetime 0: 2 events, 7 before them\n"
            "        0.001000 s  start    all_reduce 50 (sequence 101 of communicator 0) f32 x 256 "
            "sum\n"
            "        0.002000 s  death    wait status 9\n");
  EXPECT_THAT(FormatHistory(FailingRun(), 1), HasSubstr("2 events, the newest 1, 7 before them"));
  EXPECT_THAT(FormatHistory(FailingRun(), 1), Not(HasSubstr("start")));
}

TEST(Line, NamesTheRun) {
  EXPECT_EQ(FormatLine(PassingRun()),
            "2026-11-21T10:44:25Z  bench_allreduce    5 cases  PASS: 5 cases measured on 2 ranks");
}

}  // namespace
}  // namespace lockstep::results::report
