#include <algorithm>
#include <string>
#include <vector>

#include "core/verdict/history.h"
#include "core/verdict/link_hosts.h"
#include "core/verdict/links.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 4;

std::string Endpoint(int rank, int peer) {
  return "10.0.0." + std::to_string(rank) + ":" + std::to_string(4000 + peer);
}

// Every pair connected; 100 portions of 64 bytes each way, one every 10 ms, 0.1 ms on the way, but
// from `slow` to its peers `to` (all where it is -1) `slow_s`.
std::vector<RankEvidence> Mesh(int slow, int to, double slow_s) {
  const auto marks = [](double late_s) {
    std::vector<ByteMark> all = {{0, 0}};
    for (int i = 1; i <= 100; ++i) {
      const ByteMark& last = all.back();
      all.push_back({last.bytes + 64, last.byte_s + 64 * (1000 + 0.01 * i + late_s)});
    }
    // Only the newest are kept.
    return std::vector<ByteMark>(all.end() - 32, all.end());
  };
  std::vector<RankEvidence> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    RankEvidence evidence = After49(rank);
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      const bool is_slow = peer == slow && (to == -1 || to == rank);
      TcpSocket& socket = evidence.sockets.emplace_back();
      socket.local = Endpoint(rank, peer);
      socket.remote = Endpoint(peer, rank);
      socket.written = socket.received = 6400;
      socket.closed = true;
      socket.arrivals = 100;
      socket.written_marks = marks(0);
      socket.received_marks = marks(is_slow ? slow_s : 0.0001);
    }
    ranks.push_back(evidence);
  }
  return ranks;
}

std::vector<Finding> Find(const std::vector<RankEvidence>& evidence) {
  Ranks ranks;
  for (const RankEvidence& rank : evidence) ranks.push_back(&rank);
  return FindSlowLinks(ranks);
}

TEST(SlowLink, IsNamedWithItsTime) {
  const std::vector<Finding> findings = Find(Mesh(2, 1, 0.0125));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].cause, "slow_link");
  EXPECT_THAT(findings[0].culprits, ElementsAre(1, 2));
  EXPECT_THAT(findings[0].message, HasSubstr("link 2 -> 1: bytes are on the way for 12.5 ms"));
}

TEST(SlowLink, OfARankWithSlowLinksTheRankIsNamed) {
  EXPECT_THAT(Find(Mesh(3, -1, 0.05)).at(0).culprits, ElementsAre(3));
}

TEST(SlowLink, NothingIsSaidOfEqualOnesOrOfWhatTheReaderDoes) {
  EXPECT_THAT(Find(Mesh(2, 1, 0.0001)), IsEmpty());
  EXPECT_THAT(Find(Mesh(2, 1, 0.002)), IsEmpty()) << "a processor that is waited for";
  std::vector<RankEvidence> ranks = Mesh(2, 1, 0.05);
  // Rank 1 lets what came lie for 40 ms.
  for (TcpSocket& socket : ranks[1].sockets) socket.unread_byte_s = 6400 * 0.04;
  EXPECT_THAT(Find(ranks), IsEmpty());
  // On a busy machine all do, and that says nothing of the link.
  for (RankEvidence& rank : ranks) {
    for (TcpSocket& socket : rank.sockets) socket.unread_byte_s = 6400 * 0.04;
  }
  EXPECT_THAT(Find(ranks), testing::SizeIs(1));
  ranks = Mesh(2, 1, 0.05);
  for (TcpSocket& socket : ranks[1].sockets) socket.arrivals = 5;
  EXPECT_THAT(Find(ranks), IsEmpty()) << "five portions say nothing of a habit";
}

// As on a machine so busy that its looks are late.
TEST(SlowLink, WhatTheKernelsDoNotConfirmIsNotSaid) {
  std::vector<RankEvidence> ranks = Mesh(2, 1, 0.05);
  const auto socket_of = [&](int rank, int peer) -> TcpSocket& {
    auto& all = ranks[static_cast<std::size_t>(rank)].sockets;
    return *std::find_if(all.begin(), all.end(),
                         [&](const auto& s) { return s.local == Endpoint(rank, peer); });
  };
  TcpSocket& slow = socket_of(2, 1);
  slow.round_trip_us = 3000;
  EXPECT_THAT(Find(ranks), testing::SizeIs(1)) << "the other end is behind a relay";
  socket_of(1, 2).round_trip_us = 3000;
  EXPECT_THAT(Find(ranks), IsEmpty());
  slow.retransmits = 40;
  EXPECT_THAT(Find(ranks).at(0).message, HasSubstr("40 segments were sent again"));
  slow.retransmits = 2;
  EXPECT_THAT(Find(ranks), IsEmpty());
  slow.round_trip_us = 60000;
  EXPECT_THAT(Find(ranks), testing::SizeIs(1));
  for (TcpSocket& socket : ranks[1].sockets) socket.unread_byte_s = 6400 * 0.04;
  EXPECT_THAT(Find(ranks), testing::SizeIs(1)) << "kernels answer, whether or not it is read";
}

// What is lost often is sent again so soon that it is hardly late.
TEST(SlowLink, LossIsTold) {
  std::vector<RankEvidence> ranks = Mesh(2, 1, 0.003);
  TcpSocket& lossy = *std::find_if(ranks[2].sockets.begin(), ranks[2].sockets.end(),
                                   [](const auto& s) { return s.local == Endpoint(2, 1); });
  lossy.retransmits = 4;  // of 100 portions
  EXPECT_THAT(Find(ranks), IsEmpty());
  lossy.retransmits = 5;
  EXPECT_THAT(Find(ranks).at(0).culprits, ElementsAre(1, 2));
  EXPECT_THAT(Find(ranks)[0].message, HasSubstr("5 segments were sent again"));
  for (TcpSocket& socket : ranks[1].sockets) {
    if (socket.remote == Endpoint(2, 1)) socket.arrivals = 500;
  }
  EXPECT_THAT(Find(ranks), IsEmpty()) << "one in a hundred";
}

// Two hosts have no other link to compare theirs with, but what it was.
TEST(SlowLink, OfTheOnlyLinkItIsKnownHowItWasAtItsBest) {
  const auto both_ways = [](std::uint32_t least_us) {
    std::vector<RankEvidence> ranks = Mesh(0, 1, 0.05);
    const std::vector<RankEvidence> back = Mesh(1, 0, 0.05);
    ranks[0].sockets = {back[0].sockets[0]};
    ranks[1].sockets = {ranks[1].sockets[0]};
    ranks.resize(2);
    ranks[0].sockets[0].round_trip_us = ranks[1].sockets[0].round_trip_us = 100000;
    for (RankEvidence& rank : ranks) rank.sockets[0].least_round_trip_us = least_us;
    return Find(ranks);
  };
  EXPECT_THAT(both_ways(100).at(0).culprits, ElementsAre(0, 1));
  EXPECT_THAT(both_ways(90000), IsEmpty()) << "it never was better";
}

// The ends were looked at last at different moments: what only one of them has seen does not count.
TEST(SlowLink, ComparesTheSameBytes) {
  std::vector<RankEvidence> ranks = Mesh(2, 1, 0.0001);
  for (TcpSocket& socket : ranks[1].sockets) {
    socket.received_marks.resize(socket.received_marks.size() - 10);
  }
  EXPECT_THAT(Find(ranks), IsEmpty());
  ranks = Mesh(2, 1, 0.0125);
  for (TcpSocket& socket : ranks[2].sockets) {
    socket.written_marks.resize(socket.written_marks.size() - 10);
  }
  EXPECT_THAT(Find(ranks).at(0).message, HasSubstr("12.5 ms"));
}

// Ranks 0 and 1 on one host, 2 and 3 on another, with a clock of its own.
std::vector<RankHost> TwoHosts() {
  return {{"left", "a"}, {"left", "a"}, {"right", "b"}, {"right", "b"}};
}

TEST(SlowLink, BetweenHostsTheOffsetOfTheirClocksIsNoTime) {
  for (const double offset_s : {3.0, -3.0}) {
    std::vector<RankEvidence> evidence = Mesh(0, 2, 0.05);
    for (const int rank : {2, 3}) {
      for (TcpSocket& socket : evidence[static_cast<std::size_t>(rank)].sockets) {
        for (ByteMark& mark : socket.written_marks) {
          mark.byte_s += static_cast<double>(mark.bytes) * offset_s;
        }
        for (ByteMark& mark : socket.received_marks) {
          mark.byte_s += static_cast<double>(mark.bytes) * offset_s;
        }
      }
    }
    AlignClocks(TwoHosts(), evidence);
    const std::vector<Finding> findings = Find(evidence);
    ASSERT_EQ(findings.size(), 1u) << offset_s;
    EXPECT_THAT(findings[0].culprits, ElementsAre(0, 2));
    EXPECT_THAT(findings[0].message, HasSubstr("for 25.")) << "half of 50 and 0.1 ms";
    Judgement judgement;
    judgement.findings = findings;
    NameHosts(evidence, TwoHosts(), judgement);
    EXPECT_THAT(judgement.findings[0].message, HasSubstr("between hosts left and right"));
  }
}

TEST(SlowLink, HostsAreNamedWhereTheLinksAreBetweenThem) {
  const auto named = [](const std::vector<RankEvidence>& evidence, std::vector<RankHost> hosts) {
    Judgement judgement;
    judgement.findings = Find(evidence);
    NameHosts(evidence, hosts, judgement);
    return judgement.findings.at(0);
  };
  const std::vector<RankHost> four = {{"a", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}};
  EXPECT_THAT(named(Mesh(2, 1, 0.05), four).message, HasSubstr("hosts c and b (c -> b)"));
  const Finding all = named(Mesh(3, -1, 0.05), four);
  EXPECT_THAT(all.message, HasSubstr("all of these links are of host d"));
  EXPECT_THAT(all.culprits, ElementsAre(3));
  const std::vector<RankHost> one(4, {"a", "1"});
  EXPECT_EQ(named(Mesh(2, 1, 0.05), one).message, Find(Mesh(2, 1, 0.05)).at(0).message);
}

}  // namespace
}  // namespace lockstep
