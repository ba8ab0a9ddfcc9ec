// The side-by-side trace, to the letter.
#include "core/verdict/trace.h"

#include <signal.h>

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Trace TraceIn(const std::vector<RankEvidence>& evidence, const TraceLimits& limits = {},
              const Setting& setting = {.deadline_seconds = kDeadline}) {
  return TraceOf(evidence, setting, Judge(evidence, setting), limits);
}

TEST(Trace, MismatchMarkedAmongTheLastCollectives) {
  const auto bucket = [](int rank) {
    return History(rank).Does(AllReduce(2), 2).As(journal::Purpose::kBucket).Does(AllReduce(2));
  };
  const std::vector<RankEvidence> evidence = {
      bucket(0).As(journal::Purpose::kJoinAlive).Enters(AllReduce(1)),
      bucket(1).As(journal::Purpose::kBarrier).Enters(Barrier())};
  EXPECT_EQ(
      FormatTrace(TraceIn(evidence, {.rows_before = 1})),
      "    seq  rank 0                                   rank 1\n"
      "      2  all_reduce f32[2]  bucket 0     done     all_reduce f32[2]  bucket 0  done\n"
      ">     3  all_reduce f32[1]  join: alive  WAITS    barrier                      WAITS\n");
  const Trace trace = TraceIn(evidence);
  EXPECT_EQ(trace.communicator, "world");
  EXPECT_THAT(trace.ranks, ElementsAre(0, 1));
  ASSERT_EQ(trace.rows.size(), 4u);
  EXPECT_TRUE(trace.rows[3].in_question);
  EXPECT_EQ(trace.rows[3].sequence, 3u);
  EXPECT_EQ(trace.rows[3].cells[1].call, "barrier");
  EXPECT_EQ(trace.rows[3].cells[1].state, CallState::kWaits);
}

TEST(Trace, SaysWhatBecameOfWhoIsNotThere) {
  const Trace trace = TraceIn({At50(0), After49(1).Signalled(SIGKILL), At50(2).Exited(9),
                               After49(3).Queues(AllReduce()), After49(4).In(journal::Phase::kLoad),
                               At50(5).Stopped(SIGSTOP)});
  const TraceRow& row = trace.rows.back();
  EXPECT_TRUE(row.in_question);
  EXPECT_EQ(row.cells[0].state, CallState::kWaits);
  EXPECT_EQ(row.cells[1].call, "(was killed by SIGKILL)");
  EXPECT_EQ(row.cells[2].state, CallState::kEnded);
  EXPECT_EQ(row.cells[3].state, CallState::kQueued);
  EXPECT_THAT(row.cells[4].call, HasSubstr("(loading data"));
  EXPECT_EQ(row.cells[5].state, CallState::kStopped);
  EXPECT_THAT(FormatTrace(trace), HasSubstr("\n>    49  all_reduce f32[256]"));
}

TEST(Trace, BoundedInRowsAndColumnsWithTheCulpritAmongThem) {
  std::vector<RankEvidence> evidence;
  for (int rank = 0; rank < 100; ++rank) evidence.push_back(At50(rank).Silent(6));
  evidence[77] = After49(77).In(journal::Phase::kCompute).Silent(6);
  const Trace trace = TraceIn(evidence, {.rows_before = 3, .rows_after = 2, .columns = 4});
  EXPECT_THAT(trace.ranks, ElementsAre(0, 1, 2, 77));
  EXPECT_EQ(trace.rows.size(), 4u);  // nothing follows the last one
}

TEST(Trace, OfAnotherCommunicator) {
  Setting setting = {.deadline_seconds = kDeadline};
  setting.groups = {{1, "pair", {1, 2}}};
  const auto at = [](int rank, std::int64_t count) {
    return After49(rank).On(1).Enters(AllReduce(count));
  };
  const Trace trace = TraceIn({After49(0), at(1, 8), at(2, 9)}, {}, setting);
  EXPECT_EQ(trace.communicator, "pair");
  EXPECT_THAT(trace.ranks, ElementsAre(1, 2));
  ASSERT_EQ(trace.rows.size(), 1u);
  EXPECT_EQ(trace.rows[0].cells[1].call, "all_reduce f32[9]");
}

TEST(Trace, AroundTheCallThatFailedNotOneThatIsQueuedBehindIt) {
  const Trace trace = TraceIn({After49(0)
                                   .FailsIn(AllReduce())
                                   .Queues(AllReduce(8))
                                   .Reports("gloo: Connection closed by peer")
                                   .Leaves(1),
                               After49(1).Leaves(0)},
                              {.rows_before = 1});
  ASSERT_EQ(trace.rows.size(), 3u);
  EXPECT_TRUE(trace.rows[1].in_question);
  EXPECT_EQ(trace.rows[1].sequence, 49u);
}

TEST(Trace, NothingInQuestionIsNoTrace) {
  EXPECT_THAT(TraceIn({After49(0).Leaves(0), After49(1).Leaves(0)}).rows, IsEmpty());
  EXPECT_EQ(FormatTrace({}), "");
  EXPECT_THAT(TraceIn({}).rows, IsEmpty());
}

}  // namespace
}  // namespace lockstep::verdict
