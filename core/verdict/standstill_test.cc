#include <limits>

#include "core/verdict/judge.h"
#include "core/verdict/testing/history.h"

namespace lockstep::verdict {
namespace {

bool Stands(const std::vector<RankEvidence>& evidence) {
  return NobodyCanGoOn(evidence, Judge(evidence, std::numeric_limits<double>::infinity()));
}

TEST(StandstillTest, DifferentOperationsInOnePosition) {
  EXPECT_TRUE(Stands({At50(0), After49(1).Enters(Barrier())}));
  EXPECT_FALSE(Stands({At50(0), At50(1)}));
  EXPECT_FALSE(Stands({At50(0), After49(1)}));
}

TEST(StandstillTest, SomebodyWaitsForOneThatIsGone) {
  EXPECT_TRUE(Stands({At50(0), After49(1).Signalled(9)}));
  EXPECT_TRUE(Stands({At50(0), After49(1).Stopped(19)}));
  EXPECT_TRUE(Stands({At50(0), After49(1).Leaves(0)}));
  // On its way: it may still fail, or finish.
  EXPECT_FALSE(Stands({After49(0), After49(1).Signalled(9)}));
  EXPECT_FALSE(Stands({At50(0), At50(1), After49(2)}));
}

TEST(StandstillTest, SilenceIsNoProof) {
  EXPECT_FALSE(Stands({At50(0).Silent(1e6), At50(1).Silent(1e6)}));
  EXPECT_FALSE(Stands({At50(0).Silent(1e6), After49(1).In(journal::Phase::kLoad).Silent(1e6)}));
  EXPECT_FALSE(Stands({At50(0), After49(1).Lost()}));
}

TEST(StandstillTest, OneThatReportedAnErrorStillLeaves) {
  EXPECT_FALSE(Stands({At50(0), After49(1).FailsIn(AllReduce())}));
  EXPECT_TRUE(Stands({At50(0), After49(1).FailsIn(AllReduce()).Leaves(1)}));
}

TEST(StandstillTest, SameMoment) {
  EXPECT_TRUE(SameMoment({At50(0), At50(1)}, {At50(0), At50(1)}));
  EXPECT_FALSE(SameMoment({At50(0), At50(1)}, {At50(0), At50(1).In(journal::Phase::kCheck)}));
  EXPECT_FALSE(SameMoment({At50(0), At50(1)}, {At50(0), At50(1).Stopped(19)}));
  EXPECT_FALSE(SameMoment({At50(0), At50(1)}, {At50(0)}));
  const RankEvidence evidence = At50(0);
  EXPECT_EQ(NewestTicks({evidence, History(1)}), evidence.journal.events.back().ticks);
  EXPECT_EQ(NewestTicks({}), 0u);
}

}  // namespace
}  // namespace lockstep::verdict
