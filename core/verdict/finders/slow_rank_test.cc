// Slow ranks: found while everything goes on, and never called hung.
#include <set>

#include "core/verdict/finders/find.h"
#include "core/verdict/testing/history.h"
#include "core/verdict/testing/paced.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict::finders {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RankEvidence Paced(int rank, Ticks own, Ticks shared, int times = 20) {
  return verdict::Paced(
      History(rank).In(journal::Phase::kMeasure).Does(AllReduce(), times).Leaves(0), own, shared);
}

TEST(SlowRank, WorksLongerBetweenCollectivesThanTheOthers) {
  // The others spend in the collective what the slow rank spends outside.
  const std::vector<Finding> findings =
      FindSlowRanks({Paced(0, 100, 1000), Paced(1, 1000, 100), Paced(2, 110, 990)});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cause, Cause::kSlowRank);
  EXPECT_TRUE(findings[0].proved);
  EXPECT_THAT(findings[0].culprits, ElementsAre(1));
  EXPECT_THAT(findings[0].message, HasSubstr("9.1 times as long"));
  EXPECT_THAT(findings[0].message, HasSubstr("91 % of its period"));
  // Of two ranks, too.
  EXPECT_THAT(FindSlowRanks({Paced(0, 1000, 100), Paced(1, 100, 1000)}).at(0).culprits,
              ElementsAre(0));
}

TEST(SlowRank, NotWhereItDoesNotMatterOrAllAreAlike) {
  EXPECT_THAT(FindSlowRanks({Paced(0, 100, 1000), Paced(1, 100, 1000)}), IsEmpty());
  EXPECT_THAT(FindSlowRanks({Paced(0, 100, 1000), Paced(1, 190, 910)}), IsEmpty());
  // Ten times as long, and 1 % of the period.
  EXPECT_THAT(FindSlowRanks({Paced(0, 10, 9990), Paced(1, 100, 9900)}), IsEmpty());
}

// One checkpoint, or one wait for a processor, is no habit; one in every eight collectives is.
TEST(SlowRank, NotOfAWaitThatIsSeldom) {
  const auto slow_in = [](const std::set<int>& which) {
    RankEvidence evidence = Paced(1, 100, 1000, 40);
    Ticks more = 0;
    int number = -1;
    for (journal::JournalEvent& event : evidence.journal.events) {
      if (event.kind == journal::EventKind::kEnqueue && which.contains(++number)) more += 100'000;
      event.ticks += more;
    }
    return FindSlowRanks({Paced(0, 100, 1000, 40), evidence});
  };
  EXPECT_THAT(slow_in({20}), IsEmpty());
  EXPECT_THAT(slow_in({10, 20}), IsEmpty());
  const Finding at_times = slow_in({5, 13, 21, 29, 37}).at(0);
  EXPECT_THAT(at_times.culprits, ElementsAre(1));
  EXPECT_FALSE(at_times.proved) << "somebody may have stopped it so often";
}

JournalEvent Event(journal::EventKind kind, int number, Ticks ticks, std::uint16_t communicator) {
  JournalEvent event;
  event.kind = kind;
  event.sequence = static_cast<std::uint64_t>(number) + 1;
  event.communicator = communicator;
  event.ticks = ticks;
  return event;
}

// Rank 1 enqueues a moment after the call ahead of it has ended, rank 0 a moment before.
TEST(SlowRank, ACallMayBeEnqueuedBeforeTheOneAheadOfItEnds) {
  std::vector<RankEvidence> ranks = {History(0), History(1)};
  const auto add = [&](std::size_t rank, journal::EventKind kind, int number, Ticks ticks) {
    ranks[rank].journal.events.push_back(Event(kind, number, ticks, 0));
  };
  for (int i = 0; i < 20; ++i) {
    const Ticks now = 1000 + 100 * static_cast<Ticks>(i);
    if (i == 0) add(0, journal::EventKind::kEnqueue, 0, now);
    add(0, journal::EventKind::kEnqueue, i + 1, now + 100);
    add(0, journal::EventKind::kEnd, i, now + 105);
    add(1, journal::EventKind::kEnqueue, i, now + 10);
    add(1, journal::EventKind::kEnd, i, now + 105);
  }
  EXPECT_THAT(FindSlowRanks(ranks), IsEmpty());
}

// Ranks 0 and 2 wait for ranks 1 and 3 in calls of two before each call of all.
TEST(SlowRank, NotWhereRanksWaitInSmallerGroups) {
  std::vector<RankEvidence> ranks = {History(0), History(1), History(2), History(3)};
  for (int i = 0; i < 20; ++i) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const Ticks now = 1000 + 1000 * static_cast<Ticks>(i);
      const auto add = [&](journal::EventKind kind, Ticks after, std::uint16_t communicator) {
        ranks[rank].journal.events.push_back(Event(kind, i, now + after, communicator));
      };
      add(journal::EventKind::kEnqueue, rank == 1 ? 500 : 50, 1);
      add(journal::EventKind::kEnd, rank < 2 ? 510 : 60, 1);
      add(journal::EventKind::kEnqueue, rank < 2 ? 510 : 60, 0);
      add(journal::EventKind::kEnd, 520, 0);
    }
  }
  EXPECT_THAT(FindSlowRanks(ranks), IsEmpty());
}

// Under join() a rank without inputs answers the others, and works on nothing.
TEST(SlowRank, NotOfARankWhosePeersJoinedEarly) {
  const auto joins = [](Ticks own) {
    RankEvidence evidence = Paced(1, own, 100, 40);
    const Ticks begin = evidence.journal.events[evidence.journal.events.size() / 4].ticks;
    for (journal::JournalEvent& event : evidence.journal.events) {
      if (event.ticks < begin) continue;
      event.phase = journal::Phase::kJoinExit;
      event.ticks = begin + (event.ticks - begin) / 100;
    }
    return evidence;
  };
  EXPECT_THAT(FindSlowRanks({Paced(0, 1000, 100, 40), joins(1000)}), IsEmpty());
  // What it did before it joined counts.
  EXPECT_THAT(FindSlowRanks({Paced(0, 100, 1000, 40), joins(1000)}).at(0).culprits, ElementsAre(1));
}

TEST(SlowRank, UndecidableFromFewCollectivesOrOneRank) {
  EXPECT_THAT(FindSlowRanks({Paced(0, 100, 1000, 8), Paced(1, 1000, 100, 8)}), IsEmpty());
  EXPECT_THAT(FindSlowRanks({Paced(0, 1000, 100)}), IsEmpty());
  EXPECT_THAT(FindSlowRanks({}), IsEmpty());
}

TEST(SlowRank, IsNotHungWhileItProgresses) {
  EXPECT_EQ(JudgeAll({Paced(0, 100, 1000), Paced(1, 1000, 100)}).verdict, Verdict::kPass);
}

}  // namespace
}  // namespace lockstep::verdict::finders
