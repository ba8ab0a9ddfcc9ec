// The table and the document of jobs that are written down.
#include "watch/status/print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/version.h"

namespace lockstep::watch::status {
namespace {

CallNow InReceive() {
  CallNow call;
  call.thread.thread = 1;
  call.thread.inside = true;
  call.thread.call.call = events::Call::kRecv;
  call.thread.call.comm = events::kWorldComm;
  call.thread.call.peer = 1;
  call.thread.call.tag = 7;
  call.seconds = 12.34;
  call.site = "solver.c:31";
  return call;
}

std::vector<JobNow> Jobs() {
  CallNow outside = InReceive();
  outside.thread.inside = false;
  outside.site = "";
  JobNow job{"4711", 4, 99, "mpirun -np 4 ./solver", {}};
  job.ranks.resize(4);
  for (int rank = 0; rank < 4; ++rank) {
    RankNow& now = job.ranks[static_cast<std::size_t>(rank)];
    now.rank = rank;
    now.pid = 100 + rank;
    now.state = rank == 2 ? "ended" : "sleeping";
    if (rank != 2) now.calls = {rank == 0 ? InReceive() : outside};
  }
  job.ranks[2].exit_code = 3;
  job.ranks[3].polls = true;
  job.ranks[3].poll_call = events::Call::kIprobe;
  job.ranks[3].poll_site = "solver.c:40";
  return {job};
}

TEST(Print, ARowARank) {
  EXPECT_EQ(FormatTable(Jobs()),
            R"(rank  pid  state     seconds  in                      of     at
job 4711: mpirun -np 4 ./solver (4 ranks, watcher 99)
   0  100  sleeping     12.3  MPI_Recv from 1, tag 7  world  solver.c:31
   1  101  sleeping     12.3  in no call              -      -
   2  102  ended           -  ended, exit code 3      -      -
   3  103  sleeping        -  polls with MPI_Iprobe   -      solver.c:40
)");
}

TEST(Print, NoJobIsOneLine) {
  EXPECT_EQ(FormatTable({}), "No job is watched here: start one with lockstep watch -- COMMAND\n");
  const nlohmann::json nothing = {{"lockstep", ThisVersionText()},
                                  {"jobs", nlohmann::json::array()}};
  EXPECT_EQ(nlohmann::json::parse(FormatJson({})), nothing);
}

TEST(Print, RanksOfOtherHostsAreCounted) {
  std::vector<JobNow> jobs = Jobs();
  jobs[0].ranks.resize(1);
  EXPECT_NE(FormatTable(jobs).find("(1 of 4 ranks here, watcher 99)"), std::string::npos);
}

TEST(Print, TheDocumentHasNullForWhatIsNotKnown) {
  const nlohmann::json ranks = nlohmann::json::parse(FormatJson(Jobs()))["jobs"][0]["ranks"];
  const nlohmann::json& call = ranks[0]["calls"][0];
  EXPECT_EQ(call["text"], "MPI_Recv from 1, tag 7");
  EXPECT_EQ(call["peer"], 1);
  EXPECT_EQ(call["communicator"], "world");
  EXPECT_TRUE(ranks[1]["calls"][0]["communicator"].is_null());
  EXPECT_TRUE(ranks[1]["calls"][0]["peer"].is_null());
  EXPECT_EQ(ranks[2]["exit_code"], 3);
  EXPECT_TRUE(ranks[0]["exit_code"].is_null());
  EXPECT_TRUE(ranks[3]["polls"]);
}

}  // namespace
}  // namespace lockstep::watch::status
