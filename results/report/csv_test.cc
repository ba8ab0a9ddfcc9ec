// The literal runs as comma-separated values, cell by cell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "results/report/report.h"
#include "results/report/testing/literal_run.h"

namespace lockstep::results::report {
namespace {

using testing::EndsWith;
using testing::StartsWith;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

store::Run OfAVersion(store::Run run) {
  run.lockstep.number = "1.2.3";
  return run;
}

TEST(Csv, ARowACaseWithAsManyCellsAsTheHead) {
  const auto lines = Lines(FormatCsv(OfAVersion(PassingRun())));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(
      lines[0],
      StartsWith("run,program,lockstep_version,case,repetition,backend,device,ranks,collective,"));
  EXPECT_EQ(
      lines[4],
      "1a2b3c4d,bench_allreduce,1.2.3,barrier,0,mpi,host,2,barrier,,,false,0,,,pass,precision,1200,"
      "24,600,582,630,600,624,480,900,24000,1,540,,,300,,48,52,64,298,0,0");
  for (const std::string& line : lines) {
    EXPECT_EQ(std::ranges::count(line, ','), std::ranges::count(lines[0], ',')) << line;
  }
}

TEST(Csv, TextsAreQuotedAndPartsHaveColumns) {
  auto run = StepsRun();
  run.cases[1].settings[1].second = "a \"b\", c";
  const auto lines = Lines(FormatCsv(run));
  EXPECT_THAT(lines[0], EndsWith(",setting:bucket_cap_mb,setting:comm_hook,part:forward_ns,"
                                 "part:exposed_communication_ns,part:overlap"));
  EXPECT_THAT(lines[2], EndsWith(",10,\"a \"\"b\"\", c\",4000000,2000000,0.75"));
}

TEST(Csv, OfLinksARowAPair) {
  const auto lines = Lines(FormatCsv(OfAVersion(LinksRun())));
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[0], StartsWith("run,lockstep_version,a,b,standing,rounds,latency_ns,"));
  EXPECT_EQ(lines[6], "1a2b3c4d,1.2.3,2,3,not_measured,0,,,,,,,,");
}

}  // namespace
}  // namespace lockstep::results::report
