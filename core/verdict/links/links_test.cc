// Four ranks, all connected, silent in one all-reduce. The tests change counters of single sockets,
// and a link may be named only where both ends agree.
#include <string>
#include <vector>

#include "core/verdict/link_traffic.h"
#include "core/verdict/links/hosts.h"
#include "core/verdict/testing/history.h"

namespace lockstep::verdict::links {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kRanks = 4;

std::string Endpoint(int rank, int peer) {
  return "127.0.0.1:" + std::to_string(4000 + 10 * rank + peer) + "%host";
}

// Four ranks in the 50th all-reduce, silent beyond the deadline, every pair connected, 1000 bytes
// each way.
std::vector<RankEvidence> QuietMesh() {
  std::vector<RankEvidence> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    RankEvidence evidence = At50(rank).Silent(6);
    for (int peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      evidence.sockets.push_back({Endpoint(rank, peer), Endpoint(peer, rank), 1000, 1000});
    }
    evidence.sockets.push_back({"127.0.0.1:9%host", ""});
    ranks.push_back(evidence);
  }
  return ranks;
}

TcpSocket& SocketOf(std::vector<RankEvidence>& ranks, int rank, int peer) {
  for (TcpSocket& socket : ranks[static_cast<std::size_t>(rank)].sockets) {
    if (socket.remote == Endpoint(peer, rank)) return socket;
  }
  ADD_FAILURE() << "no such socket";
  return ranks[0].sockets[0];
}

TEST(Links, TheOneThatHoldsBytesIsNamedWhicheverItIs) {
  for (int from = 0; from < kRanks; ++from) {
    for (int to = 0; to < kRanks; ++to) {
      if (from == to) continue;
      std::vector<RankEvidence> ranks = QuietMesh();
      SocketOf(ranks, from, to).written += 48;
      const Judgement judgement = JudgeAll(ranks);
      ASSERT_EQ(judgement.findings.size(), 1u);
      const Finding& finding = judgement.findings[0];
      EXPECT_EQ(finding.cause, Cause::kTransportStall);
      EXPECT_FALSE(finding.proved);
      EXPECT_THAT(finding.culprits, ElementsAre(std::min(from, to), std::max(from, to)));
      EXPECT_THAT(finding.message, HasSubstr("link " + std::to_string(from) + " -> " +
                                             std::to_string(to) + ": 48 bytes"));
    }
  }
}

TEST(Links, AReaderThatDoesNotReadIsNotItsLink) {
  std::vector<RankEvidence> ranks = QuietMesh();
  SocketOf(ranks, 0, 1).written += 100'000;
  SocketOf(ranks, 1, 0).unread = 400;
  const Judgement judgement = JudgeAll(ranks);
  ASSERT_EQ(judgement.findings.size(), 1u);
  EXPECT_EQ(judgement.findings[0].cause, Cause::kTransportStall);
  EXPECT_THAT(judgement.findings[0].culprits, IsEmpty());
  EXPECT_THAT(judgement.findings[0].message, Not(HasSubstr("link")));
}

TEST(Links, NothingOnTheWayNamesNoLinkAndNoSilenceNoStall) {
  std::vector<RankEvidence> ranks = QuietMesh();
  EXPECT_THAT(JudgeAll(ranks).findings.at(0).culprits, IsEmpty());
  SocketOf(ranks, 2, 3).written += 48;
  for (RankEvidence& rank : ranks) rank.seconds_silent = 1;
  EXPECT_THAT(JudgeAll(ranks).findings, IsEmpty());
}

TEST(Links, ABusyRankIsToBlameAndNoLink) {
  std::vector<RankEvidence> ranks = QuietMesh();
  const std::vector<TcpSocket> sockets = ranks[2].sockets;
  ranks[2] = After49(2).Silent(6);
  ranks[2].sockets = sockets;
  SocketOf(ranks, 0, 2).written += 48;
  const Judgement judgement = JudgeAll(ranks);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankBusy);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(2));
}

RankEvidence Fails(const RankEvidence& with_sockets, const std::string& error) {
  RankEvidence evidence = History(with_sockets.rank)
                              .In(journal::Phase::kMeasure)
                              .Does(AllReduce(), 49)
                              .FailsIn(AllReduce())
                              .Reports(error)
                              .Leaves(1);
  evidence.sockets = with_sockets.sockets;
  return evidence;
}

TEST(Links, OfABrokenOneBothEndsTell) {
  std::vector<RankEvidence> ranks = QuietMesh();
  ranks[1] =
      Fails(ranks[1], "[pair.cc:598] Read error [127.0.0.1]:48911: Connection reset by peer");
  ranks[3] = Fails(ranks[3], "[pair.cc:598] Read error [127.0.0.1]:4013: Connection reset by peer");
  // Rank 1 tells of port 4031 with its bytes the other way round, as gloo does. Those that were
  // left:
  ranks[0] = Fails(ranks[0], "[pair.cc:589] Connection closed by peer [127.0.0.1]:4010");
  ranks[2] = Fails(ranks[2], "[pair.cc:589] Connection closed by peer [127.0.0.1]:4012");
  const Judgement judgement = JudgeAll(ranks);
  EXPECT_EQ(judgement.findings.at(0).cause, Cause::kRankFailed);
  EXPECT_THAT(judgement.findings[0].culprits, ElementsAre(1, 3));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("the link 1 - 3 broke"));
  EXPECT_THAT(judgement.findings[0].message,
              HasSubstr("ranks 0 and 2 failed in a collective because"));
}

TEST(Links, OneThatWasResetWhileBothLiveBroke) {
  const std::string reset = "Read error [127.0.0.1]:4013: Connection reset by peer";
  std::vector<RankEvidence> ranks = QuietMesh();
  ranks[3] = Fails(ranks[3], reset);
  ranks[2] = Fails(ranks[2], "Connection closed by peer [127.0.0.1]:4032");
  const Judgement judgement = JudgeAll(ranks);
  EXPECT_THAT(judgement.findings.at(0).culprits, ElementsAre(1, 3));
  EXPECT_THAT(judgement.findings[0].message, HasSubstr("the link 1 - 3 broke"));
  // A peer that failed, too, may have reset it.
  ranks[1] = Fails(ranks[1], "the program raised an exception");
  EXPECT_THAT(JudgeAll(ranks).findings.at(0).message, Not(HasSubstr("link")));
}

// Its own connection ended because rank 3 was reset, so that it fell after rank 3.
TEST(Links, OneThatWasResetBrokeThoughItsPeerFellLater) {
  const auto judged = [](std::uint64_t later, const std::string& host, const std::string& error) {
    std::vector<RankEvidence> ranks = QuietMesh();
    ranks[3] = Fails(ranks[3], "Read error [127.0.0.1]:4013: Connection reset by peer");
    ranks[2] = Fails(ranks[2], "Read error [127.0.0.1]:4032: Connection reset by peer");
    ranks[1] = Fails(ranks[1], error);
    ranks[1].host = host;
    for (const int rank : {1, 2}) {
      for (auto& event : ranks[static_cast<std::size_t>(rank)].journal.events) event.ticks += later;
    }
    return JudgeAll(ranks).findings.at(0);
  };
  const std::string left = "Connection closed by peer [127.0.0.1]:4021";
  // Of port 5 nobody's look told whose it is.
  for (const std::string& error : {left, std::string("closed by peer [127.0.0.1]:5")}) {
    const Finding named = judged(1, "", error);
    EXPECT_THAT(named.message, HasSubstr("the link 1 - 3 broke"));
    EXPECT_THAT(named.culprits, ElementsAre(1, 3));
  }
  EXPECT_THAT(judged(0, "", left).message, Not(HasSubstr("broke"))) << "no order";
  EXPECT_THAT(judged(1, "b", left).message, Not(HasSubstr("broke"))) << "two clocks";
  EXPECT_THAT(judged(1, "", "the program raised an exception").message, Not(HasSubstr("broke")));
  EXPECT_THAT(judged(1, "", "Timed out waiting for [127.0.0.1]:4021").message,
              Not(HasSubstr("broke")));
}

TEST(Links, OneSidedErrorsAreNoBrokenLink) {
  std::vector<RankEvidence> ranks = QuietMesh();
  ranks[1] = Fails(ranks[1], "the program raised an exception");
  ranks[3] = Fails(ranks[3], "Connection closed by peer [127.0.0.1]:4013");
  EXPECT_THAT(JudgeAll(ranks).findings.at(0).message, Not(HasSubstr("link")));
  // Nor is an endpoint that two hosts have, or rubbish.
  ranks = QuietMesh();
  for (const int rank : {1, 3}) {
    ranks[static_cast<std::size_t>(rank)] = Fails(ranks[static_cast<std::size_t>(rank)],
                                                  "error [127.0.0.1]:9: 1.2.3.4:x [127.0.0.1]: .");
  }
  EXPECT_THAT(JudgeAll(ranks).findings.at(0).message, Not(HasSubstr("link")));
}

// Rank 0 asks rank 1 for a connection, of which rank 1 knows nothing.
TEST(Links, OnlyAKernelThatDoesNotAnswerAccusesTheNetwork) {
  const auto told = [](std::uint32_t round_trip_us, std::uint32_t not_accepted) {
    std::vector<RankEvidence> ranks = {At50(0), At50(1)};
    ranks[0].sockets = {
        {.local = "10.0.0.1:50", .remote = "10.0.0.2:9", .round_trip_us = round_trip_us}};
    ranks[1].sockets = {{.local = "10.0.0.2:9", .unread = not_accepted}};
    Judgement judgement;
    judgement.findings = {{.cause = Cause::kInitFailure, .message = "no communicator"}};
    NameHosts(ranks, {{"left", "a"}, {"right", "b"}}, judgement);
    return judgement.findings[0].message;
  };
  EXPECT_THAT(told(0, 0), HasSubstr("the network between hosts left and right"));
  EXPECT_EQ(told(40, 0), "no communicator") << "its kernel answered, its process does not accept";
  EXPECT_EQ(told(0, 5), "no communicator") << "its kernel has others wait";
}

}  // namespace
}  // namespace lockstep::verdict::links
