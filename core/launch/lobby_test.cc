// Who is let in, and that strangers cannot disturb.
#include "core/launch/lobby.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "core/launch/machine.h"
#include "core/launch/protocol.h"
#include "core/launch/tcp.h"

namespace lockstep {
namespace {

LaunchContext ContextOf(int rank) {
  LaunchContext context;
  context.rank = context.local_rank = rank;
  context.size = context.local_size = 3;
  context.launcher = "test";
  context.job = "lobby_test-" + std::to_string(getpid());
  return context;
}

Deadline Soon() { return Deadline::AfterSeconds(10); }

TEST(Lobby, AdmitsRanksAndNobodyElse) {
  Signals signals;
  const auto lobby = Lobby::Listen("127.0.0.1", 2);
  ASSERT_TRUE(lobby.ok()) << lobby.status().message();
  const auto door = Door::Open(ContextOf(0), (*lobby)->invitation());
  ASSERT_TRUE(door.ok()) << door.status().message();
  EXPECT_FALSE(Door::Open(ContextOf(0), (*lobby)->invitation()).ok()) << "one door a job";

  std::vector<std::string> refused;
  std::thread strangers([&] {
    const Invitation good = (*lobby)->invitation();
    // Silent ones and a talker stay connected all the time.
    std::vector<Fd> silent;
    for (int i = 0; i < 20; ++i) {
      silent.push_back(ConnectTcp(good.address, good.port, Soon()).value());
    }
    const std::string noise(1 << 20, '\xff');
    send(silent.back().get(), noise.data(), noise.size(), MSG_NOSIGNAL);
    Invitation wrong = good;
    wrong.secret[kSecretBytes - 1] ^= 1;
    refused.push_back(Join(wrong, DescribeAgent(1), &signals, Soon()).status().message());
    refused.push_back(Join(good, DescribeAgent(0), &signals, Soon()).status().message());
    refused.push_back(Join(good, DescribeAgent(3), &signals, Soon()).status().message());
    std::vector<Channel> admitted;
    for (const int rank : {2, 1}) {
      const auto found = KnockAtDoor(ContextOf(rank), signals, Soon());
      ASSERT_TRUE(found.ok()) << found.status().message();
      Result<Channel> channel = Join(*found, DescribeAgent(rank), &signals, Soon());
      ASSERT_TRUE(channel.ok()) << channel.status().message();
      admitted.push_back(std::move(channel).value());
      if (rank == 2)
        refused.push_back(
            Join(good, DescribeAgent(2), &signals, Deadline::AfterSeconds(5)).status().message());
    }
  });
  Result<std::vector<Lobby::Guest>> guests = (*lobby)->Gather(door->get(), signals, Soon());
  strangers.join();
  ASSERT_TRUE(guests.ok()) << guests.status().message();
  ASSERT_EQ(guests->size(), 2u);
  EXPECT_EQ((*guests)[0].info.rank, 1);
  EXPECT_EQ((*guests)[1].info.rank, 2);
  EXPECT_EQ((*guests)[0].info.pid, getpid());
  ASSERT_EQ(refused.size(), 4u);
  for (const std::string& message : refused) {
    EXPECT_NE(message.find("did not admit"), std::string::npos) << message;
  }
}

TEST(Lobby, NamesWhoIsMissing) {
  Signals signals;
  const auto lobby = Lobby::Listen("127.0.0.1", 2);
  ASSERT_TRUE(lobby.ok());
  const auto guests = (*lobby)->Gather(nullptr, signals, Deadline::AfterSeconds(0.1));
  ASSERT_FALSE(guests.ok());
  EXPECT_NE(guests.status().message().find("rank 1, 2 did not join"), std::string::npos)
      << guests.status().message();
  EXPECT_EQ(guests.status().code(), StatusCode::kEnvironment);
}

TEST(Lobby, NoCoordinator) {
  Signals signals;
  LaunchContext context = ContextOf(1);
  context.job += "-nobody";
  const auto invitation = KnockAtDoor(context, signals, Deadline::AfterSeconds(0.2));
  ASSERT_FALSE(invitation.ok());
  EXPECT_EQ(invitation.status().code(), StatusCode::kEnvironment);
}

TEST(Lobby, Secrets) {
  EXPECT_TRUE(SameSecret("abc", "abc"));
  EXPECT_FALSE(SameSecret("abc", "abd"));
  EXPECT_FALSE(SameSecret("abc", "ab"));
  const auto a = Lobby::Listen("127.0.0.1", 0), b = Lobby::Listen("127.0.0.1", 0);
  EXPECT_NE((*a)->invitation().secret, (*b)->invitation().secret);
  const auto back = DecodeInvitation(EncodeInvitation((*a)->invitation()));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->port, (*a)->invitation().port);
  EXPECT_FALSE(DecodeInvitation("nonsense").has_value());
}

TEST(Machine, Interfaces) {
  const auto loopback = InterfaceAddress("lo");
  ASSERT_TRUE(loopback.ok()) << loopback.status().message();
  EXPECT_EQ(*loopback, "127.0.0.1");
  EXPECT_EQ(*InterfaceAddress("127.0.0.1"), "127.0.0.1");
  const auto unknown = InterfaceAddress("nowhere7");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidInput);
  EXPECT_NE(unknown.status().message().find("nowhere7"), std::string::npos);
  const auto usual = InterfaceAddress("");
  if (usual.ok()) {
    EXPECT_NE(*usual, "127.0.0.1");
  }
}

}  // namespace
}  // namespace lockstep
