// The rule for slow links over literal histories: what happened to the bytes, and when who looked.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/verdict/links/hosts.h"
#include "core/verdict/links/testing/link_mesh.h"

namespace lockstep::verdict::links {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(SlowLink, IsNamedAndProved) {
  const std::vector<Finding> findings = Find(SlowMesh(2, 1, 0.02));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].cause, Cause::kSlowLink);
  EXPECT_TRUE(findings[0].proved);
  EXPECT_THAT(findings[0].culprits, ElementsAre(1, 2));
  EXPECT_THAT(findings[0].message,
              AllOf(HasSubstr("link 2 -> 1: bytes are on the way for 1"),
                    HasSubstr("0 ns on most links"), HasSubstr("round trips of 20 ms")));
  EXPECT_THAT(findings[0].message, Not(HasSubstr("arrived")));
}

TEST(SlowLink, OfARankWithSlowLinksTheRankIsNamed) {
  EXPECT_THAT(Find(SlowMesh(3, -1, 0.05)).at(0).culprits, ElementsAre(3));
}

TEST(SlowLink, NothingIsSaidOfEqualOnes) {
  EXPECT_THAT(Find(Mesh()), IsEmpty());
  EXPECT_THAT(Find(SlowMesh(2, 1, 0.008)), IsEmpty()) << "a time slice";
  LinkHistory far = Mesh();
  for (int rank = 0; rank < 4; ++rank) {
    for (int peer = 0; peer < 4; ++peer) {
      if (peer == rank) continue;
      Delay(far.way(rank, peer), 0.03);
      far.way(rank, peer).round_trip_s = 0.06;
    }
  }
  EXPECT_THAT(Find(far), IsEmpty()) << "all are";
}

// Open MPI's trees use few links, and both directions of one are half of four.
TEST(SlowLink, HalfOfThemMayBeSlow) {
  LinkHistory history;
  for (const auto& [from, to] :
       {std::pair(0, 1), std::pair(1, 0), std::pair(2, 3), std::pair(3, 2)}) {
    history.way(from, to) = Mesh().way(from, to);
  }
  for (int rank = 0; rank < 4; ++rank) history.end(rank).looks = Mesh().end(rank).looks;
  Delay(history.way(0, 1), 0.033);
  Delay(history.way(1, 0), 0.033);
  EXPECT_THAT(Find(history).at(0).culprits, ElementsAre(0, 1));
}

std::string WhyNone(LinkHistory history) {
  const std::vector<RankEvidence> evidence = history.Evidence();
  return WhyNoneIsKnown(PointersTo(evidence));
}

// Nothing is found in either; only of links that are well it is known that nothing is slow.
TEST(SlowLink, WhatLooksDoNotTellIsUnknown) {
  EXPECT_EQ(WhyNone(Mesh()), "");
  LinkHistory late = SlowMesh(2, 1, 0.02);
  late.end(1).looks = Looks(0.05, 0.003);
  EXPECT_THAT(Find(late), IsEmpty());
  EXPECT_THAT(WhyNone(late), HasSubstr("only that bytes took"));
  LinkHistory brief = SlowMesh(2, 1, 0.02);
  brief.way(2, 1).portions.resize(6);
  EXPECT_THAT(Find(brief), IsEmpty());
  EXPECT_THAT(WhyNone(brief), HasSubstr("looks saw bytes pass link 2 -> 1"));
  EXPECT_THAT(WhyNone(LinkHistory()), HasSubstr("fewer than two links"));
}

// Whenever the looks come: what they do not prove is not on the way.
TEST(SlowLink, LateLooksMakeNoLinkSlow) {
  for (const int late : {0, 1, 2, 3}) {
    for (const double every_s : {0.02, 0.05, 0.13}) {
      LinkHistory history = Mesh();
      history.end(late).looks = Looks(every_s, 0.013);
      EXPECT_THAT(Find(history), IsEmpty()) << late << " looks every " << every_s;
    }
  }
  LinkHistory slow = SlowMesh(2, 1, 0.05);
  slow.end(1).looks = Looks(0.021, 0.003);
  EXPECT_THAT(Find(slow).at(0).culprits, ElementsAre(1, 2)) << "and hide none that is slower";
}

// A look that took long shows a moment between its two clocks, and nobody knows which.
TEST(SlowLink, ALookThatTookLongIsOfNoMoment) {
  LinkHistory history = Mesh();
  for (LinkLook& look : history.end(1).looks) look.ended_s += 0.03;
  for (LinkLook& look : history.end(2).looks) look.began_s -= 0.03;
  EXPECT_THAT(Find(history), IsEmpty());
}

// It holds everything back for 50 ms, and was told to hold nothing: it is stopped, or starved.
TEST(SlowLink, ARelayThatIsStoppedIsNoLink) {
  LinkHistory history = Mesh();
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0), std::pair(0, 3)}) {
    Delay(history.way(from, to), 0.05);
    Relay(history.way(from, to), 0);
  }
  Relay(history.way(3, 0), 0);
  EXPECT_THAT(Find(history), IsEmpty());
}

TEST(SlowLink, OfARelayCountsWhatItWasToldAndWhatIsSeen) {
  LinkHistory history = Mesh();
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    Delay(history.way(from, to), 0.07);  // 50 of them its own
    Relay(history.way(from, to), 0.02);
  }
  const Finding finding = Find(history).at(0);
  EXPECT_THAT(finding.culprits, ElementsAre(0, 1));
  EXPECT_TRUE(finding.proved);
  EXPECT_THAT(finding.message,
              AllOf(HasSubstr("for 20 ms or more"), HasSubstr("told to hold them back for 20 ms")));
  // It is no witness: where the kernels saw nothing of it, nothing was late.
  Delay(history.way(0, 1), kBrief);
  Delay(history.way(1, 0), kBrief);
  EXPECT_THAT(Find(history), IsEmpty());
}

// Its window is closed, because it does not read: what is written stays with the sender.
TEST(SlowLink, AReceiverThatDoesNotReadIsNoLink) {
  LinkHistory history = SlowMesh(2, 1, 0.04);
  for (LinkWay::Portion& portion : history.way(2, 1).portions) portion.limited_s = 0.039;
  EXPECT_THAT(Find(history), IsEmpty());
}

// `rank` waits for a processor for 40 ms after each portion that it is sent.
void Starve(LinkHistory& history, int rank, double from_s) {
  history.end(rank).waited_s = [from_s](double at_s) {
    double sum_s = 0;
    for (int i = 0; i < kPortions; ++i) {
      sum_s += std::clamp(at_s - (kBegin + kEvery * i + from_s), 0.0, 0.04);
    }
    return sum_s;
  };
}

TEST(SlowLink, WhereSomebodyWaitedForAProcessorItIsSuspectedOnly) {
  for (const int starved : {1, 2}) {
    LinkHistory history = SlowMesh(2, 1, 0.045);
    Starve(history, starved, 0.0051);
    const Finding finding = Find(history).at(0);
    EXPECT_FALSE(finding.proved);
    EXPECT_THAT(finding.culprits, ElementsAre(1, 2));
    EXPECT_THAT(finding.message, HasSubstr("not proved: processes at its ends waited"));
  }
  LinkHistory history = SlowMesh(2, 1, 0.045);
  Starve(history, 0, 0.0051);
  EXPECT_TRUE(Find(history).at(0).proved) << "another rank's wait is none of its";
}

// Two clocks that are apart make one direction slow, and the other one quicker than time.
TEST(SlowLink, ClocksThatAreApartMakeNoLinkSlow) {
  for (const double ahead_s : {0.012, -0.012, 0.05}) {
    LinkHistory history = Mesh();
    history.end(2).clock_ahead_s = ahead_s;
    EXPECT_THAT(Find(history), IsEmpty()) << ahead_s;
  }
}

TEST(SlowLink, ClocksThatDriftApartMakeNoLinkSlow) {
  LinkHistory history = Mesh();
  for (LinkLook& look : history.end(2).looks) {
    const double drift_s = 0.01 * (look.at_s - kBegin);
    look.began_s += drift_s;
    look.ended_s += drift_s;
  }
  EXPECT_THAT(Find(history), IsEmpty());
}

// The largest that any link shows is how far the dates of this run are wrong.
TEST(SlowLink, TheLargestNegativeTransitIsALimitOfAll) {
  LinkHistory history = SlowMesh(2, 1, 0.02);
  EXPECT_THAT(Find(history), SizeIs(1));
  Delay(history.way(0, 3), -0.03);
  EXPECT_THAT(Find(history), IsEmpty());
}

TEST(SlowLink, WithoutTheKernelsWordItIsSuspectedOnly) {
  LinkHistory history = SlowMesh(2, 1, 0.02);
  history.way(2, 1).round_trip_s = 0.003;
  const Finding finding = Find(history).at(0);
  EXPECT_FALSE(finding.proved);
  EXPECT_THAT(finding.message, HasSubstr("not proved: the sender's kernel measured round trips"));
}

TEST(SlowLink, WithoutAQuickEchoItIsSuspectedOnly) {
  for (const auto& [echo_s, doubt] :
       {std::pair(0.0, "is not known"), std::pair(0.01, "took 10 ms, too")}) {
    LinkHistory history = SlowMesh(2, 1, 0.02);
    history.end(1).echo_s = echo_s;
    const Finding finding = Find(history).at(0);
    EXPECT_FALSE(finding.proved);
    EXPECT_THAT(finding.message, HasSubstr(doubt));
  }
}

// A third of the links takes no time, a third 12 ms, a third 24: none of them stands out.
TEST(SlowLink, NoneIsSlowWhereAllDiffer) {
  LinkHistory history = Mesh();
  int number = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (int peer = 0; peer < 4; ++peer) {
      if (peer == rank) continue;
      Delay(history.way(rank, peer), 0.00001 + 0.012 * (number++ % 3));
      history.way(rank, peer).round_trip_s = 0.04;
    }
  }
  EXPECT_THAT(Find(history), IsEmpty());
}

TEST(SlowLink, OneStallIsNoHabit) {
  LinkHistory history = Mesh();
  history.way(2, 1).round_trip_s = 0.1;
  for (std::size_t i = 20; i < 30; ++i) history.way(2, 1).portions[i].came_s += 0.045;
  EXPECT_THAT(Find(history), IsEmpty());
  LinkHistory few = SlowMesh(2, 1, 0.02);
  few.way(2, 1).portions.resize(7);
  EXPECT_THAT(Find(few), IsEmpty()) << "nor do seven portions tell of one";
}

// The ends were looked at last at different moments.
TEST(SlowLink, WhatOnlyOneEndHasSeenSaysNothing) {
  LinkHistory history = Mesh();
  for (int rank = 1; rank < 4; ++rank) {
    std::vector<LinkLook>& looks = history.end(rank).looks;
    looks.resize(looks.size() / static_cast<std::size_t>(rank + 1));
  }
  EXPECT_THAT(Find(history), IsEmpty());
  LinkHistory slow = SlowMesh(2, 1, 0.02);
  slow.end(2).looks.resize(slow.end(2).looks.size() * 2 / 3);
  EXPECT_THAT(Find(slow), SizeIs(1));
}

// A kernel without sched-stats tells nothing, which is not the same as no wait.
TEST(SlowLink, WhereWaitsAreNotKnownItIsSuspectedOnly) {
  LinkHistory history = SlowMesh(2, 1, 0.045);
  history.end(1).waited_s = [](double) { return std::numeric_limits<double>::quiet_NaN(); };
  const Finding finding = Find(history).at(0);
  EXPECT_FALSE(finding.proved);
  EXPECT_THAT(finding.message, HasSubstr("waited for a processor is not known"));
}

// Two hosts have no other link to compare theirs with, but what it was.
TEST(SlowLink, OfTheOnlyLinkItIsKnownHowItWasAtItsBest) {
  const auto both_ways = [](std::uint32_t least_us) {
    LinkHistory history = Mesh(2);
    for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
      Delay(history.way(from, to), 0.04);
      history.way(from, to).round_trip_s = 0.08;
      history.way(from, to).least_round_trip_us = least_us;
    }
    return Find(history);
  };
  EXPECT_THAT(both_ways(100).at(0).culprits, ElementsAre(0, 1));
  EXPECT_THAT(both_ways(78000), IsEmpty()) << "it never was better";
  EXPECT_THAT(both_ways(0), IsEmpty()) << "that is not known";
}

// Ranks 0 and 1 on one host, 2 and 3 on another, with a clock of its own.
std::vector<RankHost> TwoHosts() {
  return {{"left", "a"}, {"left", "a"}, {"right", "b"}, {"right", "b"}};
}

TEST(SlowLink, BetweenHostsTheOffsetOfTheirClocksIsNoTime) {
  for (const double offset_s : {3.0, -3.0}) {
    for (const double seconds : {kBrief, 0.045}) {
      LinkHistory history = SlowMesh(0, 2, seconds);
      history.end(2).clock_ahead_s = history.end(3).clock_ahead_s = offset_s;
      std::vector<RankEvidence> evidence = history.Evidence();
      AlignClocks(TwoHosts(), evidence);
      const std::vector<Finding> findings = FindIn(evidence);
      ASSERT_EQ(findings.size(), seconds > kBrief ? 1u : 0u) << offset_s;
      if (findings.empty()) continue;
      EXPECT_TRUE(findings[0].proved) << findings[0].message;
      EXPECT_THAT(findings[0].culprits, ElementsAre(0, 2));
      Judgement judgement;
      judgement.findings = findings;
      NameHosts(evidence, TwoHosts(), judgement);
      EXPECT_THAT(judgement.findings[0].message, HasSubstr("between hosts left and right"));
    }
  }
}

TEST(SlowLink, HostsAreNamedWhereTheLinksAreBetweenThem) {
  const auto named = [](LinkHistory history, std::vector<RankHost> hosts) {
    const std::vector<RankEvidence> evidence = history.Evidence();
    Judgement judgement;
    judgement.findings = FindIn(evidence);
    NameHosts(evidence, hosts, judgement);
    return judgement.findings.at(0);
  };
  const std::vector<RankHost> four = {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}};
  EXPECT_THAT(named(SlowMesh(2, 1, 0.04), four).message, HasSubstr("hosts c and b (c -> b)"));
  const Finding all = named(SlowMesh(3, -1, 0.04), four);
  EXPECT_THAT(all.message, HasSubstr("all of these links are of host d"));
  EXPECT_THAT(all.culprits, ElementsAre(3));
  const std::vector<RankHost> one(4, {"a", "1"});
  EXPECT_EQ(named(SlowMesh(2, 1, 0.04), one).message, Find(SlowMesh(2, 1, 0.04)).at(0).message);
}

}  // namespace
}  // namespace lockstep::verdict::links
