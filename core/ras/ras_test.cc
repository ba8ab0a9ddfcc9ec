// Answers of NCCL's RAS in both forms, and what two of them let one suspect. They have the members,
// lines and order that NCCL 2.24.3 to 2.30.7 writes with `VERBOSE STATUS`.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ras/status.h"
#include "core/ras/witness.h"

namespace lockstep::ras {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using verdict::Verdict;

std::string RankJson(int rank, int all_reduce, int broadcast, int init_state = 0,
                     int async_error = 0, bool aborted = false) {
  return fmt::format(R"(        {{
          "rank": {0},
          "host": "10.0.0.{0}",
          "pid": {1},
          "cuda_dev": {0},
          "nvml_dev": {0},
          "status": {{
            "init_state": {2},
            "async_error": {3},
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": {6}
          }},
          "collective_counts": {{
            "Broadcast": {4},
            "Reduce": 0,
            "AllGather": 0,
            "ReduceScatter": 0,
            "AllReduce": {5}
          }}
        }})",
                     rank, 100 + rank, init_state, async_error, broadcast, all_reduce, aborted);
}

// `comma`: as of NCCL 2.29; 2.28.7 to 2.28.9 leave it out.
std::string MissingJson(int rank, bool unresponsive, const std::string& host = "10.0.0.9",
                        int pid = 77, const std::string& comma = ",") {
  return fmt::format(R"(        {{
          "rank": {},
          "host": "{}",
          "pid": {},
          "cuda_dev": 1,
          "nvml_dev": 1{}
          "status": {{
            "unresponsive": {},
            "considered_dead": false
          }}
        }})",
                     rank, host, pid, comma, unresponsive);
}

std::string CommunicatorJson(const std::string& ranks, const std::string& missing,
                             const std::string& second = "0xb7e:0xb82") {
  return fmt::format(R"(    {{
      "hash": "0xab",
      "secondary_hash": "{}",
      "size": 3,
      "ranks_count": 3,
      "missing_ranks_count": 0,
      "ranks": [
{}
      ],
      "missing_ranks": [
{}
      ]
    }})",
                     second, ranks, missing);
}

std::string JsonAnswer(const std::string& communicators, const std::string& version = "2.29.2") {
  return fmt::format(R"({{
  "nccl_version": "{}",
  "cuda_runtime_version": 13000,
  "cuda_driver_version": 13000,
  "timestamp": "2025-12-19 13:06:53",
  "communicators_count": 1,
  "communicators": [
{}
  ],
  "ras": {{
    "collection_time_sec": 0.003,
    "timeouts_count": 0
  }}
}}
)",
                     version, communicators);
}

JobStatus Read(const std::string& text) {
  const Result<JobStatus> status = ParseStatus(text, "test");
  EXPECT_TRUE(status.ok()) << status.status().message() << text;
  return status.ok() ? *status : JobStatus();
}

JobStatus Json(const std::string& ranks, const std::string& missing = "") {
  return Read(JsonAnswer(CommunicatorJson(ranks, missing)));
}

// `errors` and `warnings` as of communicators. NCCL 2.28.7 has thousandths in "(0.003s)".
JobStatus Text(const std::string& warnings, const std::string& errors = "",
               const std::string& version = "2.27.7") {
  return Read(fmt::format(
      "NCCL version {} compiled with CUDA 12.8\n"
      "CUDA runtime version 12080, driver version 13000\n\n"
      "Job summary\n===========\n\n"
      "  Nodes  Processes         GPUs  Processes     GPUs\n"
      "(total)   per node  per process    (total)  (total)\n"
      "      1          8            1          8        8\n"
      "\nCommunicators... (0.00s)\n=============\n\n"
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1         1         8         8         8   RUNNING  MISMATCH\n"
      "\nErrors\n======\n\n"
      "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 77 on node 10.0.0.9 managing GPU 5\n\n"
      "{}Warnings\n========\n\n"
      "TIMEOUT\n  Encountered 2 communication timeouts while gathering communicator data\n\n{}",
      version, errors, warnings));
}

std::vector<std::string> SaidBy(const Testimony& testimony) {
  std::vector<std::string> said;
  for (const verdict::Finding& finding : testimony.findings) {
    EXPECT_FALSE(finding.proved);
    said.push_back(std::string(finding.cause.name()) + ": " + finding.headline.text());
  }
  return said;
}

TEST(RasTest, WhoIsBehindInBothLooksIsSuspected) {
  const JobStatus look =
      Json(RankJson(0, 412, 3) + "," + RankJson(1, 411, 3) + "," + RankJson(2, 412, 3));
  const Testimony testimony = Hear(look, look);
  EXPECT_EQ(testimony.verdict, Verdict::kUnknown);
  EXPECT_THAT(SaidBy(testimony),
              ElementsAre("rank_busy: rank 1 (pid 101 on 10.0.0.1) launched 411 AllReduce, 2 ranks "
                          "412; no launch between the looks"));
  EXPECT_THAT(testimony.findings.front().culprits, ElementsAre(1));
  EXPECT_THAT(testimony.findings.front().message, HasSubstr("communicator 0xab"));
}

TEST(RasTest, ADifferenceThatMovesIsNone) {
  const JobStatus first = Json(RankJson(0, 412, 3) + "," + RankJson(1, 411, 3));
  const JobStatus second = Json(RankJson(0, 500, 3) + "," + RankJson(1, 499, 3));
  const Testimony testimony = Hear(first, second);
  EXPECT_EQ(testimony.verdict, Verdict::kPass);
  EXPECT_THAT(testimony.findings, IsEmpty());
}

TEST(RasTest, WhoIsBehindInOneOperationWhileOthersAreLaunchedGoesOn) {
  const JobStatus first = Json(RankJson(0, 412, 3) + "," + RankJson(1, 411, 3));
  const JobStatus second = Json(RankJson(0, 412, 4) + "," + RankJson(1, 411, 4));
  const Testimony testimony = Hear(first, second);
  EXPECT_EQ(testimony.verdict, Verdict::kPass);
  EXPECT_THAT(testimony.findings, IsEmpty());
}

TEST(RasTest, NoChangeIsNoPass) {
  const JobStatus look = Json(RankJson(0, 412, 3) + "," + RankJson(1, 412, 3));
  const Testimony testimony = Hear(look, look);
  EXPECT_EQ(testimony.verdict, Verdict::kUnknown);
  EXPECT_THAT(testimony.findings, IsEmpty());
  EXPECT_THAT(testimony.sentence, HasSubstr("all wait in one collective"));
}

TEST(RasTest, RanksThatTookDifferentWays) {
  const JobStatus look = Json(RankJson(0, 10, 4) + "," + RankJson(1, 9, 5));
  EXPECT_THAT(SaidBy(Hear(look, look)),
              ElementsAre("collective_mismatch: rank 1 (pid 101 on 10.0.0.1) launched 9 AllReduce, "
                          "rank 0 10; no launch between the looks",
                          "collective_mismatch: rank 0 (pid 100 on 10.0.0.0) launched 4 Broadcast, "
                          "rank 1 5; no launch between the looks"));
}

TEST(RasTest, WhoIsMissedInBothLooksOrReportsAnError) {
  const std::string ranks = RankJson(0, 10, 0, 0, 6);
  const std::string missing = MissingJson(1, true);
  EXPECT_THAT(SaidBy(Hear(Json(ranks, missing), Json(ranks, missing))),
              ElementsAre("rank_failed: rank 0 (pid 100 on 10.0.0.0) reports: Remote process error",
                          "rank_lost: rank 1 (pid 77 on 10.0.0.9) does not answer NCCL's RAS: "
                          "stopped, gone or cut off"));
  const std::string well = RankJson(0, 10, 0);
  EXPECT_THAT(SaidBy(Hear(Json(well), Json(well, missing))), IsEmpty()) << "it may be about to end";
}

TEST(RasTest, AnAbortThatDoesNotLastMayBeDestroyProcessGroup) {
  const JobStatus aborted = Json(RankJson(0, 10, 0, 0, 0, true));
  EXPECT_THAT(SaidBy(Hear(Json(RankJson(0, 9, 0)), aborted)),
              ElementsAre("unknown: rank 0 (pid 100 on 10.0.0.0) aborted the communicator by the "
                          "second look: an error, or its program ends it"));
  EXPECT_THAT(SaidBy(Hear(aborted, aborted)),
              ElementsAre("rank_failed: rank 0 (pid 100 on 10.0.0.0) aborted the communicator "
                          "before the first look, and still has it"));
}

TEST(RasTest, WhoStillInitializes) {
  const JobStatus look = Json(RankJson(0, 0, 0, 7) + "," + RankJson(1, 0, 0));
  EXPECT_THAT(SaidBy(Hear(look, look)),
              ElementsAre("init_failure: rank 0 (pid 100 on 10.0.0.0) still initializes the "
                          "communicator"));
}

TEST(RasTest, WhoAnsweredIsNotMissed) {
  const std::string ranks = RankJson(0, 10, 0);
  const JobStatus look =
      Json(ranks, MissingJson(1, false) + ",\n" + MissingJson(2, true, "unknown", -1));
  EXPECT_THAT(
      SaidBy(Hear(look, look)),
      ElementsAre("rank_lost: rank 2 does not answer NCCL's RAS: stopped, gone or cut off"));
}

TEST(RasTest, AnAnswerThatLacksACommaIsRead) {
  const std::string missing = MissingJson(1, true, "10.0.0.9", 77, "");
  const JobStatus look =
      Read(JsonAnswer(CommunicatorJson(RankJson(0, 10, 0), missing + ",\n" + missing), "2.28.9"));
  EXPECT_EQ(look.version, "2.28.9");
  EXPECT_THAT(SaidBy(Hear(look, look)),
              Contains("rank_lost: rank 1 (pid 77 on 10.0.0.9) does not answer NCCL's RAS: "
                       "stopped, gone or cut off"));
}

TEST(RasTest, CommunicatorsOfOneHashAreToldApart) {
  const auto answer = [](int first, int second) {
    return Read(JsonAnswer(
        CommunicatorJson(RankJson(0, first, 0), "", "0x1:0x2") + ",\n" +
        CommunicatorJson(RankJson(0, second, 0) + "," + RankJson(1, 7, 0), "", "0x3:0x4")));
  };
  EXPECT_THAT(SaidBy(Hear(answer(1, 8), answer(2, 8))),
              ElementsAre("rank_busy: rank 1 (pid 101 on 10.0.0.1) launched 7 AllReduce, rank 0 8; "
                          "no launch between the looks"));
}

constexpr const char* kBehind =
    "#0-0 (0000079b828ff1a7) MISMATCH\n"
    "  Communicator ranks have different {0} operation counts\n"
    "  5 ranks have launched up to operation 6650\n"
    "  3 ranks have launched up to operation 6649\n"
    "  Rank 3 -- GPU 3 managed by process 4076 on node 10.0.0.1\n"
    "  Rank 6 -- [process information not found]\n"
    "  Rank 7 -- GPU 0 (NVML 7) managed by process 4079 on node 10.0.0.1\n\n";

TEST(RasTest, TextNamesThoseThatDiffer) {
  for (const auto& [version, operation] : {std::pair("2.24.3", "collective"),
                                           {"2.25.1", "collective"},
                                           {"2.26.2", "AllReduce"},
                                           {"2.27.7", "AllReduce"},
                                           {"2.28.3", "AllReduce"},
                                           {"2.30.7", "AllReduce"}}) {
    const JobStatus look = Text(fmt::format(fmt::runtime(kBehind), operation), "", version);
    EXPECT_EQ(look.version, version);
    const Testimony testimony = Hear(look, look);
    EXPECT_THAT(SaidBy(testimony),
                ElementsAre(fmt::format("rank_busy: 3 ranks launched 6649 {}, 5 ranks 6650; no "
                                        "launch between the looks",
                                        operation)));
    EXPECT_THAT(testimony.findings.front().culprits, ElementsAre(3, 6, 7));
    EXPECT_THAT(testimony.findings.front().message, HasSubstr("communicator 0x79b828ff1a7"));
  }
}

// Operations stand below one another, behind the states. Before 2.26, 0 is a number.
TEST(RasTest, TextOfSeveralOperations) {
  const JobStatus look = Text(
      "#0-1 (9e17999afaa87dbb) MISMATCH\n"
      "  Communicator ranks have different status\n"
      "  2 ranks have status RUNNING\n"
      "  Rank 2 has status INIT -- GPU 2 managed by process 13 on node 10.0.0.1\n"
      "  Communicator ranks have different Broadcast operation counts\n"
      "  Rank 2 has launched up to operation 9 -- [process information not found]\n"
      "  2 ranks have not launched any operations\n\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  Rank 0 has launched up to operation 8 -- GPU 0 managed by process 11 on node 10.0.0.1\n"
      "  Rank 1 has not launched any operations -- GPU 1 managed by process 12 on node "
      "10.0.0.1\n\n");
  EXPECT_THAT(SaidBy(Hear(look, look)),
              ElementsAre("rank_busy: rank 1 (pid 12 on 10.0.0.1) launched 0 AllReduce, rank 0 8; "
                          "no launch between the looks",
                          "rank_busy: 2 ranks launched 0 Broadcast, rank 2 9; no launch between "
                          "the looks"));
  const JobStatus old = Text(
      "#0-0 (9e17999afaa87dbb) MISMATCH\n"
      "  Communicator ranks have different collective operation counts\n"
      "  Rank 0 has launched up to operation 8 -- GPU 0 managed by process 11 on node 10.0.0.1\n"
      "  Rank 1 has launched up to operation 0 -- GPU 1 managed by process 12 on node "
      "10.0.0.1\n\n",
      "", "2.24.3");
  EXPECT_THAT(SaidBy(Hear(old, old)),
              ElementsAre("rank_busy: rank 1 (pid 12 on 10.0.0.1) launched 0 collective, rank 0 8; "
                          "no launch between the looks"));
}

TEST(RasTest, TextOfErrors) {
  const JobStatus look = Text("",
                              "#1-0 (cf264af53edbe986) ERROR\n"
                              "  Initialization error on 1 rank\n"
                              "  Rank 2 reported System error -- GPU 2 managed by process 12 on "
                              "node 10.0.0.2\n"
                              "  Asynchronous errors on 2 ranks\n"
                              "  2 ranks reported Remote process error\n"
                              "  Rank 0 -- GPU 0 managed by process 10 on node 10.0.0.2\n"
                              "  Rank 1 -- [process information not found]\n\n");
  EXPECT_THAT(SaidBy(Hear(look, look)),
              ElementsAre("rank_failed: rank 2 (pid 12 on 10.0.0.2) reports: System error",
                          "rank_failed: rank 0 (pid 10 on 10.0.0.2) reports: Remote process error",
                          "rank_failed: rank 1 reports: Remote process error"));
}

TEST(RasTest, TextOfMissingRanks) {
  const std::string begins =
      "INCOMPLETE\n  Missing communicator data from 2 job processes\n\n"
      "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 2 ranks\n";
  const JobStatus old = Text("", begins + "  The missing ranks: 5,21\n\n", "2.25.1");
  EXPECT_THAT(SaidBy(Hear(old, old)),
              ElementsAre("rank_lost: rank 5 does not answer NCCL's RAS: stopped, gone or cut off",
                          "rank_lost: rank 21 does not answer NCCL's RAS: stopped, gone or cut "
                          "off"));
  const JobStatus look = Text("",
                              begins +
                                  "  Rank 5 -- GPU 5 managed by process 77 on node 10.0.0.9\n"
                                  "  Rank 21 -- [process information not found]\n\n",
                              "2.26.2");
  EXPECT_THAT(SaidBy(Hear(look, look)),
              ElementsAre("rank_lost: rank 5 (pid 77 on 10.0.0.9) does not answer NCCL's RAS: "
                          "stopped, gone or cut off",
                          "rank_lost: rank 21 does not answer NCCL's RAS: stopped, gone or cut "
                          "off"));
}

TEST(RasTest, TextBehindAnIncompleteCommunicatorIsNotBelievedBefore229) {
  const std::string missing =
      "#1-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 1 rank\n"
      "  Rank 1 -- [process information not found]\n\n";
  const std::string behind = fmt::format(fmt::runtime(kBehind), "AllReduce");
  const std::string left =
      "#1-1 (cf264af53edbe986) MISMATCH\n  Communicator ranks have different status\n"
      "  3 ranks have status RUNNING\n  Rank 1 has status NOCOMM -- [process information not "
      "found]\n\n";
  const auto suspects = [](const JobStatus& look) { return Hear(look, look).findings.size(); };
  EXPECT_EQ(suspects(Text(behind, missing, "2.29.2")), 2U);
  EXPECT_EQ(suspects(Text(behind, missing, "2.28.9")), 1U);
  EXPECT_EQ(suspects(Text(behind + left, "", "2.29.2")), 1U);
  EXPECT_EQ(suspects(Text(behind + left, "", "2.26.2")), 0U);
}

TEST(RasTest, TextOfOneHashTwiceIsNotCompared) {
  std::string twice = fmt::format(fmt::runtime(kBehind), "AllReduce");
  const JobStatus once = Text(twice);
  EXPECT_EQ(Hear(once, once).findings.size(), 1U);
  std::string other = twice;
  other.replace(0, 4, "#0-1");
  const JobStatus look = Text(twice + other);
  EXPECT_EQ(look.communicators.size(), 2U);
  EXPECT_THAT(Hear(look, look).findings, IsEmpty());
}

TEST(RasTest, TextWithoutComplaintSaysLittle) {
  const Testimony testimony = Hear(Text(""), Text(""));
  EXPECT_EQ(testimony.verdict, Verdict::kUnknown);
  EXPECT_THAT(testimony.sentence, HasSubstr("does not say whether the job goes on"));
}

TEST(RasTest, StatesOfRanksAreNoCounts) {
  const JobStatus look = Text(
      "#0-0 (9e17999afaa87dbb) MISMATCH\n"
      "  Communicator ranks have different status\n"
      "  26 ranks have status NOCOMM\n"
      "  4 ranks have status RUNNING\n"
      "  Rank 0 -- GPU 0 managed by process 50 on node 10.0.0.1\n");
  EXPECT_THAT(Hear(look, look).findings, IsEmpty());
}

TEST(RasTest, WhatIsNoStatusIsRefused) {
  for (const std::string text : {"", "{}", "[1]", R"({"communicators": 3})", "hello\nworld\n",
                                 R"({"communicators": [{"ranks": [)"}) {
    const Result<JobStatus> status = ParseStatus(text, "a.txt");
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.status().code(), StatusCode::kInvalidInput);
    EXPECT_THAT(status.status().message(), HasSubstr("a.txt: no status of NCCL's RAS"));
  }
  // Other types than NVIDIA documents.
  EXPECT_TRUE(
      ParseStatus(R"({"communicators": [1, {"ranks": 2, "hash": 3}, {"ranks": [null]}]})", "a.txt")
          .ok());
}

}  // namespace
}  // namespace lockstep::ras
