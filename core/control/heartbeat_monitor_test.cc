// Who is taken for lost, and who may follow the coordinator.
#include "core/control/heartbeat_monitor.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/control/roster.h"

namespace lockstep::control {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(HeartbeatMonitor, SilenceBeyondTheBoundIsALoss) {
  HeartbeatMonitor monitor(20, 0);
  std::int64_t heard = 0;
  for (int second = 1; second <= 60; ++second) {
    const std::int64_t awake = monitor.Turn(second * kSecond);
    if (second == 40) heard = awake;
    EXPECT_EQ(monitor.IsLost(heard, awake), (second > 20 && second < 40)) << second;
    EXPECT_FALSE(monitor.overslept());
  }
}

TEST(HeartbeatMonitor, WhoWasStoppedItselfTakesNobodyForLost) {
  HeartbeatMonitor monitor(20, 0);
  std::int64_t awake = monitor.Turn(5 * kSecond);
  const std::int64_t heard = awake;
  awake = monitor.Turn(3600 * kSecond);
  EXPECT_FALSE(monitor.IsLost(heard, awake));
  EXPECT_TRUE(monitor.overslept()) << "but others may take it for lost";
  // … and after that counts on.
  for (int second = 1; second <= 20; ++second) awake = monitor.Turn((3600 + second) * kSecond);
  EXPECT_TRUE(monitor.IsLost(heard, awake));
  for (int second = 21; second <= 60; ++second) monitor.Turn((3600 + second) * kSecond);
  EXPECT_FALSE(monitor.overslept()) << "they did not";
}

// As long as the others wait for one that told them: 20 s after twice as long.
TEST(HeartbeatMonitor, WhoToldThatItIsBusyDidNotOversleep) {
  for (const auto& [seconds, overslept] : {std::pair(54, false), {61, true}, {3600, true}}) {
    HeartbeatMonitor monitor(20, 0);
    monitor.PassOver(seconds * kSecond, 40);
    const std::int64_t awake = monitor.Turn(seconds * kSecond);
    EXPECT_EQ(monitor.overslept(), overslept) << seconds;
    EXPECT_FALSE(monitor.IsLost(0, awake)) << "nobody else is lost by that";
  }
}

TEST(HeartbeatMonitor, TwoBeatsWithoutAnAnswerAreOverdue) {
  const HeartbeatMonitor monitor(20, 0);
  EXPECT_FALSE(monitor.IsOverdue(3 * kSecond, 13 * kSecond));
  EXPECT_TRUE(monitor.IsOverdue(3 * kSecond, 14 * kSecond));
  EXPECT_FALSE(monitor.IsLost(3 * kSecond, 14 * kSecond));
}

TEST(HeartbeatMonitor, FourBeatsWithinTheBound) {
  HeartbeatMonitor monitor(20, 0);
  int heartbeats = 0;
  for (int tenth = 1; tenth <= 200; ++tenth) {
    heartbeats += monitor.TakeHeartbeat(monitor.Turn(tenth * (kSecond / 10))) ? 1 : 0;
  }
  EXPECT_EQ(heartbeats, 4);
  EXPECT_LE(monitor.wake_ms(), 5001);
}

TEST(HeartbeatMonitor, TheBoundCanBeGiven) {
  EXPECT_EQ(*LostSecondsFrom(nullptr), kLostSeconds);
  EXPECT_EQ(*LostSecondsFrom("2.5"), 2.5);
  for (const char* const wrong : {"1", "x", "20s", "nan", "1e9", "-5"}) {
    const auto seconds = LostSecondsFrom(wrong);
    ASSERT_FALSE(seconds.ok()) << wrong;
    EXPECT_EQ(seconds.status().code(), StatusCode::kInvalidInput);
    EXPECT_NE(seconds.status().message().find(wrong), std::string::npos);
  }
}

std::vector<Contact> Contacts(int hosts, int ranks_a_host) {
  std::vector<Contact> contacts;
  for (int rank = 1; rank < hosts * ranks_a_host; ++rank) {
    contacts.push_back({rank, "node" + std::to_string(rank / ranks_a_host), "127.0.0.1",
                        static_cast<std::uint16_t>(1000 + rank)});
  }
  return contacts;
}

TEST(Roster, CandidatesAscendAndAreOnManyHosts) {
  const std::vector<Contact> chosen = ChooseCandidates(Contacts(4, 64));
  ASSERT_EQ(chosen.size(), kMostCandidates);
  std::map<std::string, int> hosts;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ++hosts[chosen[i].host];
    if (i > 0) {
      EXPECT_LT(chosen[i - 1].rank, chosen[i].rank);
    }
  }
  EXPECT_EQ(hosts.size(), 4u);
  for (const auto& [host, ranks] : hosts) EXPECT_GE(ranks, 2) << host;
  EXPECT_EQ(ChooseCandidates(Contacts(1, 3)).size(), 2u);
  EXPECT_TRUE(ChooseCandidates({}).empty());
  // Who cannot be reached cannot succeed.
  std::vector<Contact> unreachable = Contacts(1, 3);
  unreachable.front().address.clear();
  EXPECT_EQ(ChooseCandidates(unreachable).size(), 1u);
}

TEST(Roster, TravelsWhole) {
  Roster roster;
  roster.lost_seconds = 7;
  roster.agents.resize(3);
  roster.agents[2].host = "node2";
  roster.candidates = ChooseCandidates(Contacts(2, 2));
  const auto back = Decode<Roster>(Encode(roster));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->lost_seconds, 7);
  EXPECT_EQ(back->agents[2].host, "node2");
  ASSERT_EQ(back->candidates.size(), 3u);
  EXPECT_EQ(back->candidates[2].port, 1003);
  const std::string bytes = Encode(roster);
  roster.agents.clear();
  EXPECT_TRUE(Decode<Roster>(Encode(roster))->agents.empty());
  for (const std::size_t cut : {std::size_t{0}, std::size_t{9}, bytes.size() - 1}) {
    EXPECT_FALSE(Decode<Roster>(std::string_view(bytes).substr(0, cut)).has_value()) << cut;
  }
}

}  // namespace
}  // namespace lockstep::control
