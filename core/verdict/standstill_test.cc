// Literal looks at some ranks: when it is proved that nobody goes on, and when all are silent.
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

// It polls, or adds up what came, whenever it gets a processor.
TEST(StandstillTest, WhoIsStarvedInACallThatAllEnteredIsNotSilent) {
  EXPECT_TRUE(AllSilent({At50(0).Silent(6), At50(1).Silent(6).Starved(0.5)}, kDeadline));
  EXPECT_FALSE(AllSilent({At50(0).Silent(6), At50(1).Silent(6).Starved(4)}, kDeadline));
  EXPECT_TRUE(AllSilent({At50(0).Silent(90), At50(1).Silent(90).Starved(80)}, kDeadline));
  // Who waits for one that did not come, or that is stopped, has nothing to do in there.
  for (const History& other : {After49(1).Silent(6), After49(1).Stopped(19).Silent(6)}) {
    EXPECT_TRUE(AllSilent({At50(0).Silent(6).Starved(4), other}, kDeadline));
  }
}

// A busy machine takes a long time to take a process apart.
TEST(StandstillTest, WhoIsStarvedWhileItLeavesIsNotSilent) {
  RankEvidence leaves = After49(1).Leaves(0).Silent(6).Starved(4);
  leaves.state = ProcessState::kRunning;
  EXPECT_FALSE(AllSilent({leaves, leaves}, kDeadline));
  leaves.starved_s = 0.5;
  EXPECT_TRUE(AllSilent({leaves, leaves}, kDeadline));
}

TEST(StandstillTest, AStopCountsWhenItLastedForTheDeadline) {
  std::vector<RankEvidence> ranks = {At50(0), After49(1).Stopped(19).Silent(kDeadline)};
  ForgiveBriefStops(ranks, kDeadline);
  EXPECT_EQ(ranks[1].state, ProcessState::kStopped);
  ForgiveBriefStops(ranks, 1.1 * kDeadline);
  EXPECT_EQ(ranks[1].state, ProcessState::kRunning);
  EXPECT_FALSE(Stands(ranks));
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
