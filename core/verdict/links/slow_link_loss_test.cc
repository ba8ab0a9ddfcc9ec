// The rule for slow links over literal histories: what was lost on the way and sent again.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/verdict/links/testing/link_mesh.h"

namespace lockstep::verdict::links {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What is lost often is sent again so soon that it is hardly late.
TEST(SlowLink, LossIsTold) {
  LinkHistory history = Mesh();
  LinkWay& lossy = history.way(2, 1);
  lossy.resent = 4;  // of 60 portions
  EXPECT_THAT(Find(history), IsEmpty());
  lossy.resent = 5;
  EXPECT_THAT(Find(history).at(0).culprits, ElementsAre(1, 2));
  EXPECT_FALSE(Find(history)[0].proved) << "a busy receiver drops segments, too";
  EXPECT_THAT(Find(history)[0].message, HasSubstr("5 segments were lost and sent again"));
  for (LinkWay::Portion& portion : lossy.portions) portion.limited_s = 0.045;
  EXPECT_THAT(Find(history), IsEmpty()) << "for want of room at the receiver";
  for (LinkWay::Portion& portion : lossy.portions) portion.limited_s = 0;
  std::vector<RankEvidence> ranks = history.Evidence();
  for (RankEvidence& rank : ranks) {
    for (TcpSocket& socket : rank.sockets) {
      socket.limited_s += 100;
      for (ByteStep& step : socket.written_steps) step.limited_s += 100;
    }
  }
  EXPECT_THAT(FindIn(ranks), SizeIs(1)) << "the window was closed before these bytes";
  for (TcpSocket& socket : ranks[1].sockets) socket.arrivals = 500;
  EXPECT_THAT(FindIn(ranks), IsEmpty()) << "one in a hundred";
}

// One in ten comes after 220 ms, when it is sent again, and what is behind it waits.
void Lose(LinkWay& way) {
  way.resent = 6;
  for (std::size_t i = 4; i < way.portions.size(); i += 10) {
    for (std::size_t k = i; k < i + 5; ++k) {
      way.portions[k].came_s = way.portions[i].written_s + 0.22 + kBrief;
    }
  }
}

TEST(SlowLink, LossIsProvedWhereWhatWasLostIsLateAndNobodyWaited) {
  LinkHistory lossy = Mesh();
  Lose(lossy.way(2, 1));
  const Finding finding = Find(lossy).at(0);
  EXPECT_TRUE(finding.proved) << finding.message;
  EXPECT_THAT(finding.culprits, ElementsAre(1, 2));

  // The receiver was kept from its processor whenever something was lost: it dropped that itself.
  LinkHistory busy = lossy;
  busy.end(1).waited_s = [](double at_s) { return std::max(0.0, at_s - kBegin); };
  EXPECT_FALSE(Find(busy).at(0).proved);
  EXPECT_THAT(Find(busy)[0].message, HasSubstr("0 portions were late for which no process waited"));

  LinkHistory unknown = lossy;
  unknown.end(1).waited_s = [](double) { return std::numeric_limits<double>::quiet_NaN(); };
  EXPECT_FALSE(Find(unknown).at(0).proved);

  LinkHistory late = lossy;
  late.end(1).echo_s = 0.06;
  EXPECT_FALSE(Find(late).at(0).proved) << "other connections are late, too";

  // A receiver that was stopped: its kernel takes all until there is no room.
  LinkHistory stopped = lossy;
  for (LinkWay::Portion& portion : stopped.way(2, 1).portions) portion.limited_s = 0.045;
  EXPECT_THAT(Find(stopped), IsEmpty());
}

// A relay was told to lose one in ten: so many are late by 220 ms.
TEST(SlowLink, LossOfARelayIsToldWhereItIsSeen) {
  LinkHistory history = Mesh();
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    Relay(history.way(from, to), 0);
    history.way(from, to).resent = 6;
    auto& portions = history.way(from, to).portions;
    for (std::size_t i = 4; i < portions.size(); i += 10) {
      // What comes behind waits for it.
      for (std::size_t k = i; k < i + 5; ++k) {
        portions[k].came_s = portions[i].written_s + 0.22 + kBrief;
        portions[k].told_s = portions[i].written_s + 0.22 - portions[k].written_s;
      }
    }
  }
  const Finding finding = Find(history).at(0);
  EXPECT_THAT(finding.culprits, ElementsAre(0, 1));
  EXPECT_THAT(finding.message, HasSubstr("6 segments were lost"));
  Delay(history.way(0, 1), kBrief);
  Delay(history.way(1, 0), kBrief);
  EXPECT_THAT(Find(history), IsEmpty()) << "nothing was late";
}

}  // namespace
}  // namespace lockstep::verdict::links
