// Tables of a program that was watched.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "results/report/grid.h"
#include "results/report/report.h"
#include "results/report/testing/literal_run.h"

namespace lockstep::results::report {
namespace {

TEST(Waits, RanksThenPlaces) {
  EXPECT_EQ(FormatWaits(WatchedRun()),
            R"(Waiting: 4.5 s of 20 s of 2 ranks (23 %)
rank  made wait  waited   %  most of it for  came last
   1        4 s  500 ms   5  rank 0 (100 %)         90
   0     500 ms     4 s  40  rank 1 (100 %)         10

where                         calls  waited  longest  most of it for
MPI_Allreduce at solver.c:31    200   4.5 s      1 s  rank 1 (89 %)
MPI_Recv at solver.c:40, MPI_Comm_split at a_file_with_qu...
                                  1    1 ms     1 ms  rank 1 (100 %)

waited: in calls, until the last rank came that the call needed.
came last: of all members of a collective. Non-blocking calls count in the
MPI_Wait that ends them.
Of 2 calls the rank that they needed was not seen.
The trace has the newest 3 of 202 calls.
)");
}

TEST(Waits, NoLineIsWiderThanATerminal) {
  store::Run run = WatchedRun();
  run.watched->places[0].site = std::string(300, 'x') + ".c:1";
  std::istringstream lines(FormatWaits(run));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), kNarrow) << line;
}

TEST(Waits, WhatIsNotCountedIsSaid) {
  store::Run run = WatchedRun();
  EXPECT_NE(FormatWaits(run).find("Of 2 calls the rank that they needed was not seen."),
            std::string::npos);
  EXPECT_NE(FormatWaits(run).find("The trace has the newest 3 of 202 calls."), std::string::npos);
  EXPECT_EQ(FormatWaits(run).find("Not all was watched"), std::string::npos);
  run.watched->ranks[1].complete = false;
  EXPECT_NE(FormatWaits(run).find("Not all was watched."), std::string::npos);
  for (store::WatchedRank& rank : run.watched->ranks) rank.uncounted = 0;
  EXPECT_EQ(FormatWaits(run).find("was not seen"), std::string::npos);
}

TEST(Waits, PartOfTheTableOfARun) {
  EXPECT_NE(FormatTable(WatchedRun()).find("Waiting: "), std::string::npos);
  EXPECT_EQ(FormatWaits(PassingRun()), "");
}

}  // namespace
}  // namespace lockstep::results::report
