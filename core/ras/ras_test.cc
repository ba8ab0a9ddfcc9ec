// Literal answers of NCCL's RAS in both forms, and what two of them let one suspect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ras/status.h"
#include "core/ras/witness.h"

namespace lockstep::ras {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using verdict::Verdict;

std::string RankJson(int rank, int all_reduce, int broadcast, const std::string& status = "") {
  return R"({"rank": )" + std::to_string(rank) + R"(, "host": "10.0.0.)" + std::to_string(rank) +
         R"(", "pid": 10)" + std::to_string(rank) + R"(, "status": {)" + status +
         R"(}, "collective_counts": {"Broadcast": )" + std::to_string(broadcast) +
         R"(, "AllReduce": )" + std::to_string(all_reduce) + "}}";
}

JobStatus Json(const std::string& ranks, const std::string& missing = "") {
  const std::string text = R"({"nccl_version": "2.29.2", "communicators": [{"hash": "0xab", )"
                           R"("ranks": [)" +
                           ranks + R"(], "missing_ranks": [)" + missing + "]}]}";
  const Result<JobStatus> status = ParseStatus(text, "test");
  EXPECT_TRUE(status.ok()) << status.status().message();
  return status.ok() ? *status : JobStatus();
}

JobStatus Text(const std::string& sections) {
  const Result<JobStatus> status = ParseStatus(
      "NCCL version 2.26.5 compiled with CUDA 12.8\n\nCommunicators... (0.00s)\n" + sections,
      "test");
  EXPECT_TRUE(status.ok()) << status.status().message();
  return status.ok() ? *status : JobStatus();
}

std::vector<std::string> Said(const Testimony& testimony) {
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
  EXPECT_THAT(Said(testimony),
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
  EXPECT_THAT(Said(Hear(look, look)),
              ElementsAre("collective_mismatch: rank 1 (pid 101 on 10.0.0.1) launched 9 AllReduce, "
                          "rank 0 10; no launch between the looks",
                          "collective_mismatch: rank 0 (pid 100 on 10.0.0.0) launched 4 Broadcast, "
                          "rank 1 5; no launch between the looks"));
}

TEST(RasTest, WhoIsMissedInBothLooksOrReportsAnError) {
  const std::string ranks = RankJson(0, 10, 0, R"("async_error": 6)");
  const std::string missing = R"({"rank": 1, "host": "10.0.0.9", "pid": 77})";
  EXPECT_THAT(Said(Hear(Json(ranks, missing), Json(ranks, missing))),
              ElementsAre("rank_failed: rank 0 (pid 100 on 10.0.0.0) reports: Remote process error",
                          "rank_lost: rank 1 (pid 77 on 10.0.0.9) does not answer NCCL's RAS: "
                          "stopped, gone or cut off"));
  const std::string well = RankJson(0, 10, 0);
  EXPECT_THAT(Said(Hear(Json(well), Json(well, missing))), IsEmpty()) << "it may be about to end";
}

TEST(RasTest, WhoStillInitializes) {
  const JobStatus look = Json(RankJson(0, 0, 0, R"("init_state": 7)") + "," + RankJson(1, 0, 0));
  EXPECT_THAT(Said(Hear(look, look)),
              ElementsAre("init_failure: rank 0 (pid 100 on 10.0.0.0) still initializes the "
                          "communicator"));
}

TEST(RasTest, TextNamesThoseThatDiffer) {
  const JobStatus look = Text(
      "  #0-0 (27a079b828ff1a75) MISMATCH\n"
      "    Communicator ranks have different AllReduce operation counts\n"
      "    6 ranks have launched up to operation 6650\n"
      "    2 ranks have launched up to operation 6649\n"
      "    Rank 3 -- GPU 3 managed by process 4076 on node 10.0.0.1\n"
      "    Rank 7 -- GPU 7 managed by process 4079 on node 10.0.0.1\n"
      "  #0-1 (9e17999afaa87dbb) MISMATCH\n"
      "    Communicator ranks have different collective operation counts\n"
      "    Rank 0 has launched up to operation 8 -- GPU 0 managed by process 11 on node 10.0.0.1\n"
      "    Rank 1 has not launched any operations -- [process information not found]\n"
      "  #1-0 (cf264af53edbe986) INCOMPLETE\n"
      "    Missing communicator data from 2 ranks\n"
      "    The missing ranks: 5,21\n"
      "  #1-0 (cf264af53edbe986) ERROR\n"
      "    Rank 2 reported System error -- GPU 2 managed by process 12 on node 10.0.0.2\n");
  EXPECT_EQ(look.version, "2.26.5");
  EXPECT_THAT(Said(Hear(look, look)),
              ElementsAre("rank_busy: 2 ranks launched 6649 AllReduce, 6 ranks 6650; no launch "
                          "between the looks",
                          "rank_busy: rank 1 launched 0 collective, rank 0 8; no launch between "
                          "the looks",
                          "rank_failed: rank 2 (pid 12 on 10.0.0.2) reports: System error",
                          "rank_lost: rank 5 does not answer NCCL's RAS: stopped, gone or cut off",
                          "rank_lost: rank 21 does not answer NCCL's RAS: stopped, gone or cut "
                          "off"));
  EXPECT_THAT(Hear(look, look).findings.front().culprits, ElementsAre(3, 7));
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
