// Collectives with a count for each member: who may get nothing of another is not said to wait for
// it. Calls of files have no such counts, and the library works there alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

Event Counted(Call call, int root) {
  Event event = Literal::Asks(call, 3);
  event.peer = root;
  event.type = kInt;
  event.count = events::kUnknownCount;
  return event;
}

// Rank 2 may give nothing, or the library writes to a file: rank 0 goes on, and sends to the
// others.
TEST(Counts, WhoMayDoWithoutTheOthersIsNotStuck) {
  for (const Call call :
       {Call::kGatherv, Call::kIgatherv, Call::kScatterv, Call::kAllgatherv, Call::kReduce_scatter,
        Call::kAlltoallv, Call::kAlltoallw, Call::kIalltoallv, Call::kFile_write_all,
        Call::kFile_read_at_all, Call::kFile_set_view}) {
    LiteralHistory history(3);
    const bool rooted = events::FactsOf(call).sync != events::Sync::kAll;
    const Event event = Counted(call, rooted ? 0 : events::kNoRoot);
    if (events::FactsOf(call).call_class == events::Class::kPostCollective) {
      history.Posts(0, event, 1);
      history.OpenOn(0, Call::kWait, 4, {1});
    } else {
      history.Open(0, event);
    }
    history.Open(2, Literal::Receives(Call::kRecv, 5, 0));
    history.Open(1, Literal::Receives(Call::kRecv, 7, 0));
    EXPECT_THAT(history.Stuck(), IsEmpty()) << static_cast<int>(call);
  }
}

// Where it gets something of each, it needs each, and does so for sure.
TEST(Counts, WhoGetsSomethingOfAllWaitsForAll) {
  for (const Call call : {Call::kGatherv, Call::kAlltoallv, Call::kAlltoallw, Call::kAllgatherv,
                          Call::kReduce_scatter}) {
    LiteralHistory history(3);
    Event event = Counted(call, call == Call::kGatherv ? 0 : events::kNoRoot);
    event.flags = events::kAllGive;
    history.Open(0, event);
    history.Open(2, Literal::Receives(Call::kRecv, 5, 0));
    EXPECT_THAT(history.Stuck(), ElementsAre(0, 2)) << static_cast<int>(call);
    EXPECT_FALSE(history.judge().Standstill().soft);
  }
}

}  // namespace
}  // namespace lockstep::watch::judge
