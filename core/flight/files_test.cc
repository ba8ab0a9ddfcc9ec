// Names of dumps as people have them, and the jobs that they are of.
#include "core/flight/files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace lockstep::flight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Names = std::map<std::string, std::vector<int>>;  // prefix -> ranks

Result<std::vector<FlightFiles>> Group(const Names& names) {
  std::vector<FlightFile> files;
  for (const auto& [prefix, ranks] : names) {
    for (const int rank : ranks) files.push_back({prefix + std::to_string(rank), prefix, rank});
  }
  return GroupFlightFiles(std::move(files), "dumps");
}

// "a_*_: 0 1 2 3 (node01, node02)" a job; or the error.
std::vector<std::string> Jobs(const Names& names) {
  const Result<std::vector<FlightFiles>> jobs = Group(names);
  if (!jobs.ok()) return {std::string(jobs.status().message())};
  std::vector<std::string> texts;
  for (const FlightFiles& job : *jobs) {
    std::vector<int> ranks;
    for (const FlightFile& file : job.files) ranks.push_back(file.rank);
    std::vector<std::string> hosts;
    for (const FlightHost& host : job.hosts) hosts.push_back(host.name);
    texts.push_back(fmt::format("{}: {}{}", job.prefix, fmt::join(ranks, " "),
                                hosts.empty() ? "" : fmt::format(" ({})", fmt::join(hosts, ", "))));
  }
  return texts;
}

TEST(FlightFilesTest, OnePrefixIsOneJob) {
  EXPECT_THAT(Jobs({{"nccl_trace_rank_", {10, 2, 0}}}), ElementsAre("nccl_trace_rank_: 0 2 10"));
  EXPECT_THAT(Jobs({{"nccl_trace_rank_node02_", {5}}}), ElementsAre("nccl_trace_rank_node02_: 5"));
}

TEST(FlightFilesTest, HostsOfOneJobAreJoined) {
  const Names names = {{"nccl_trace_rank_node01_", {0, 1}},
                       {"nccl_trace_rank_gpu-b.local_", {2, 3}}};
  EXPECT_THAT(Jobs(names), ElementsAre("nccl_trace_rank_*_: 0 1 2 3 (gpu-b.local, node01)"));
  EXPECT_THAT(Group(names)->front().notes,
              ElementsAre("by their names the dumps are of one job on 2 hosts (gpu-b.local: ranks "
                          "2 to 3; node01: ranks 0 to 1)"));
  // Before the rest of the name, and nothing else.
  EXPECT_THAT(Jobs({{"n1_trace_rank_", {0}}, {"n2_trace_rank_", {1}}}),
              ElementsAre("*_trace_rank_: 0 1 (n1, n2)"));
  EXPECT_THAT(Jobs({{"n1_", {0, 1}}, {"n2_", {2}}}), ElementsAre("*_: 0 1 2 (n1, n2)"));
}

TEST(FlightFilesTest, ARankThatIsMissingSplitsNoJob) {
  EXPECT_THAT(Jobs({{"t_a_", {0, 3}}, {"t_b_", {5}}, {"t_c_", {8, 9}}}),
              ElementsAre("t_*_: 0 3 5 8 9 (a, b, c)"));
}

TEST(FlightFilesTest, AThousandHosts) {
  Names names;
  for (int host = 0; host < 1000; ++host) names[fmt::format("t_node{:04}_", host)] = {host};
  const auto jobs = Group(names);
  ASSERT_TRUE(jobs.ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_THAT(jobs->front().notes.front(), HasSubstr("node0003: rank 3; and 996 more)"));
}

TEST(FlightFilesTest, JobsThatShareRanksAreApart) {
  EXPECT_THAT(Jobs({{"run1_rank_", {0, 1}}, {"run2_rank_", {0, 1}}}),
              ElementsAre("run1_rank_: 0 1", "run2_rank_: 0 1"));
  EXPECT_THAT(Jobs({{"comm_lib_trace_rank_", {0, 1}}, {"nccl_trace_rank_", {0, 1}}}),
              ElementsAre("comm_lib_trace_rank_: 0 1", "nccl_trace_rank_: 0 1"));
}

TEST(FlightFilesTest, TwoJobsOnTwoHostsEach) {
  EXPECT_THAT(Jobs({{"a_n1_", {0, 1}}, {"a_n2_", {2, 3}}, {"b_n1_", {0, 1}}, {"b_n2_", {2, 3}}}),
              ElementsAre("a_*_: 0 1 2 3 (n1, n2)", "b_*_: 0 1 2 3 (n1, n2)"));
}

TEST(FlightFilesTest, WhatCannotBeToldApartIsAnError) {
  EXPECT_THAT(Jobs({{"a_n1_", {0, 1}}, {"a_n2_", {2, 3}}, {"b_n1_", {2}}}),
              ElementsAre(HasSubstr("could belong to two jobs; choose with --prefix=")));
  // Left over from before a restart on another host.
  EXPECT_THAT(Jobs({{"t_n1_", {0, 1}}, {"t_n2_", {2, 3}}, {"t_n3_", {2, 3}}}),
              ElementsAre(HasSubstr("dumps: holds dumps that begin with 't_n1_' (2 files), 't_n2_' "
                                    "(2 files), 't_n3_' (2 files): a rank has two dumps")));
}

TEST(FlightFilesTest, NoFileIsNoJob) { EXPECT_THAT(Jobs({}), IsEmpty()); }

}  // namespace
}  // namespace lockstep::flight
