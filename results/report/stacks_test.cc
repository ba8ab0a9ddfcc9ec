// Ranks that end or stand alike are shown once: what tells two stacks apart, and what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "results/report/findings.h"
#include "results/report/report.h"
#include "results/report/testing/literal_run.h"
#include "results/report/trials.h"

namespace lockstep::results::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

verdict::Judgement Two(const std::string& one, const std::string& other) {
  verdict::Judgement judgement;
  judgement.outcomes = {{0, verdict::Outcome::kHung, 0, 0, "barrier 1", 1, one},
                        {1, verdict::Outcome::kHung, 0, 0, "barrier 1", 2, other}};
  return judgement;
}

TEST(Stacks, RanksThatHangAlikeAreToldOnce) {
  const std::string table = FormatTable(HangingRun());
  EXPECT_THAT(table, StartsWith("FAIL: rank 6 (host node2, pid 4711) hangs in all_reduce 678: "
                                "asleep in pause(), silent 10 s; ranks 0-5 and 7 wait for it\n"));
  EXPECT_THAT(table, HasSubstr("\nRanks that did not finish\n"
                               "  ranks 0-7: hung: all_reduce 678 (sequence 678 of communicator "
                               "0) f32 x 2359296 sum, bucket 3 of iteration 12, silent 10.2 s\n\n"
                               "Stacks and errors\n"
                               "  rank 6: asleep in pause [do_sys_pause]\n    pause@libc.so.6 < "));
  EXPECT_THAT(table, HasSubstr("\n  ranks 0-5 and 7: running in sched_yield, 97 % CPU\n"
                               "    sched_yield@libc.so.6 < 0x7f12ab00@? < "));
  EXPECT_THAT(table, HasSubstr("\n  ranks 0-7, another thread\n    epoll_wait@libc.so.6 < "));
  const std::string once = FormatTrialDetails(HangingRun().cases[0]);
  EXPECT_EQ(once.find("sched_yield@"), once.rfind("sched_yield@"));
  std::istringstream lines(once);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("    ")) continue;
    EXPECT_LE(line.size(), kStackWidth + 3) << line;
  }
}

// What differs from process to process is no other stack.
TEST(Stacks, AddressesAndLoadTellNothingApart) {
  const std::string text = FormatUnfinished(Two("running, 9 % CPU; stack: a@x < 0x7f1@? < main@b",
                                                "running, 99 % CPU; stack: a@x < 0x8@? < main@b"));
  EXPECT_THAT(
      text, HasSubstr("\nStacks and errors\n  ranks 0 and 1: running, 9 % CPU\n    a@x < 0x7f1@? < "
                      "main@b\n"));
  EXPECT_THAT(text, HasSubstr("\n  ranks 0 and 1: hung: barrier 1, silent 2.0 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("99 %")));
}

TEST(Stacks, OtherFunctionsAreAnotherStack) {
  const std::string text = FormatUnfinished(Two("waiting; stack: a@x", "waiting; stack: b@x"));
  EXPECT_THAT(text, HasSubstr("  rank 0: waiting\n    a@x\n  rank 1: waiting\n    b@x\n"));
}

TEST(Stacks, WithoutAStackWhatItDidIsAllThereIs) {
  EXPECT_THAT(FormatUnfinished(Two("gone", "")),
              testing::EndsWith("\nStacks and errors\n  rank 0: gone\n"));
  EXPECT_THAT(FormatUnfinished(Two("", "")), Not(HasSubstr("Stacks and")));
  EXPECT_EQ(FormatUnfinished({}), "");
}

// Files keep the beginning of a long text, so the last frame may be a part of one.
TEST(Stacks, ACutFrameTellsNothingApart) {
  std::string frames = "start@x";
  while (frames.size() < 1900) frames += " < some_function_of_a_library@libfar.so.1";
  const std::string text = FormatUnfinished(Two("running; stack: " + frames + " < cut_he",
                                                "running; stack: " + frames + " < cut_here@li"));
  EXPECT_THAT(text, HasSubstr("\n  ranks 0 and 1: running\n    start@x < "));
}

}  // namespace
}  // namespace lockstep::results::report
