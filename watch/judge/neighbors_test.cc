// Collectives of neighbours: a rank waits for those alone of which it gets something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "watch/judge/testing/literal_history.h"

namespace lockstep::watch::judge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Literal = LiteralHistory;

void Open(LiteralHistory& history, int rank, int line, std::initializer_list<int> sources) {
  history.Open(rank,
               history.Naming(rank, Literal::Asks(Call::kNeighbor_allgather, line), sources));
}

TEST(Neighbors, OneThatNeverComesIsWaitedFor) {
  LiteralHistory history(3);
  Open(history, 0, 3, {2, 1});
  Open(history, 2, 3, {1});
  EXPECT_THAT(history.Stuck(), IsEmpty());  // rank 1 still runs
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0));
  EXPECT_FALSE(history.judge().Standstill().soft);
  EXPECT_THAT(history.Findings(),
              ElementsAre("deadlock: rank 0 waits in MPI_Neighbor_allgather at line 3; rank 1 is "
                          "in MPI_Recv from rank 0, tag 0, at line 5; 3 ranks are stuck"));
}

TEST(Neighbors, WhoIsNoneIsNotWaitedFor) {
  LiteralHistory history(3);
  history.Open(2, Literal::Receives(Call::kRecv, 5, 0));  // rank 0 sends when it has gone on
  Open(history, 0, 3, {1});
  Open(history, 1, 3, {0});
  EXPECT_THAT(history.Stuck(), IsEmpty());
  history.Left(0, Call::kNeighbor_allgather);
  history.Call_(0, Literal::Sends(Call::kSend, 4, 2));
  history.Left(1, Call::kNeighbor_allgather);
  history.Over(2, Call::kRecv, 0, 0, 0);
  history.Left(2, Call::kRecv);
  Open(history, 2, 6, {});
  history.Left(2, Call::kNeighbor_allgather);
  for (int rank = 0; rank < 3; ++rank) history.Finalizes(rank);
  EXPECT_THAT(history.Findings(), IsEmpty());  // no message that came in spite of a collective
}

TEST(Neighbors, TheirRequestsNeedTheSame) {
  LiteralHistory history(2);
  history.Posts(0, history.Naming(0, Literal::Asks(Call::kIneighbor_alltoall, 3), {1}), 1);
  history.OpenOn(0, Call::kWait, 4, {1});
  history.Open(1, Literal::Receives(Call::kRecv, 5, 0));
  EXPECT_THAT(history.Stuck(), ElementsAre(0, 1));
}

TEST(Neighbors, TheyHaveTheirPlaceAmongCollectives) {
  LiteralHistory history(2);
  Open(history, 0, 3, {1});
  history.Open(1, Literal::Asks(Call::kBarrier, 5));
  EXPECT_THAT(history.Causes(), ElementsAre("call_mismatch"));
}

}  // namespace
}  // namespace lockstep::watch::judge
