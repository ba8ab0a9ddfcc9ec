// Who is let in, and that strangers cannot disturb.
#include "core/control/rendezvous/join_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/control/frames.h"
#include "core/control/machine.h"
#include "core/control/rendezvous/proof.h"
#include "core/control/tcp.h"

namespace lockstep::control::rendezvous {
namespace {

LaunchContext ContextOf(int rank) {
  // Tests that run beside this one may have its process id, in namespaces of their own.
  static const unsigned job = std::random_device{}();
  LaunchContext context;
  context.rank = context.local_rank = rank;
  context.size = context.local_size = 3;
  context.launcher = "test";
  context.job = "join_server_test-" + std::to_string(job);
  return context;
}

Deadline Soon() { return Deadline::AfterSeconds(100); }

TEST(JoinServer, AdmitsRanksAndNobodyElse) {
  Signals signals;
  const auto server = JoinServer::Listen("127.0.0.1", 2);
  ASSERT_TRUE(server.ok()) << server.status().message();
  const auto endpoints = EndpointServer::Open(ContextOf(0), (*server)->endpoint());
  ASSERT_TRUE(endpoints.ok()) << endpoints.status().message();
  EXPECT_FALSE(EndpointServer::Open(ContextOf(0), (*server)->endpoint()).ok())
      << "one endpoints a job";

  std::vector<std::string> refused;
  std::thread strangers([&] {
    const Endpoint good = (*server)->endpoint();
    // Silent ones and a talker stay connected all the time.
    std::vector<Fd> silent;
    for (int i = 0; i < 20; ++i) {
      silent.push_back(ConnectTcp(good.address, good.port, Soon()).value());
    }
    const std::string noise(1 << 20, '\xff');
    send(silent.back().get(), noise.data(), noise.size(), MSG_NOSIGNAL);
    Endpoint wrong = good;
    wrong.secret[kSecretBytes - 1] ^= 1;
    EXPECT_FALSE(Join(wrong, DescribeAgent(1), &signals, Deadline::AfterSeconds(0.2)).ok());
    refused.push_back(Join(good, DescribeAgent(0), &signals, Soon()).status().message());
    refused.push_back(Join(good, DescribeAgent(3), &signals, Soon()).status().message());
    std::vector<Channel> admitted;
    for (const int rank : {2, 1}) {
      const auto found = FindEndpoint(ContextOf(rank), signals, Soon());
      ASSERT_TRUE(found.ok()) << found.status().message();
      Result<Channel> channel = Join(*found, DescribeAgent(rank), &signals, Soon());
      ASSERT_TRUE(channel.ok()) << channel.status().message();
      admitted.push_back(std::move(channel).value());
      if (rank == 2)
        refused.push_back(Join(good, DescribeAgent(2), &signals, Soon()).status().message());
    }
  });
  Result<std::vector<JoinRequest>> requests = (*server)->Gather(endpoints->get(), signals, Soon());
  strangers.join();
  ASSERT_TRUE(requests.ok()) << requests.status().message();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].info.rank, 1);
  EXPECT_EQ((*requests)[1].info.rank, 2);
  EXPECT_EQ((*requests)[0].info.pid, getpid());
  ASSERT_EQ(refused.size(), 3u);
  for (const std::string& message : refused) {
    EXPECT_NE(message.find("did not admit"), std::string::npos) << message;
  }
}

// More than a server keeps, each on a connection of its own that says nothing.
std::vector<Fd> Strangers(const Endpoint& to, int many) {
  std::vector<Fd> strangers;
  for (int i = 0; i < many; ++i) strangers.push_back(ConnectTo(to, Soon()).value());
  return strangers;
}

bool WasDropped(const Fd& stranger) {
  char byte = 0;
  return recv(stranger.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(JoinServer, OfSilentStrangersTheOldestAreDropped) {
  for (const char* address : {"127.0.0.1", "@"}) {
    Signals signals;
    const auto server = JoinServer::Listen(address, 1);
    ASSERT_TRUE(server.ok()) << server.status().message();
    const std::vector<Fd> strangers = Strangers((*server)->endpoint(), 200);
    std::thread rank([&] {
      Signals none;
      EXPECT_TRUE(Join((*server)->endpoint(), DescribeAgent(1), &none, Soon()).ok());
    });
    const auto requests = (*server)->Gather(nullptr, signals, Soon());
    rank.join();
    ASSERT_TRUE(requests.ok()) << requests.status().message();
    EXPECT_TRUE(WasDropped(strangers.front()));
    EXPECT_FALSE(WasDropped(strangers.back())) << "no time ends a connection";
  }
}

TEST(JoinServer, StrangersInTheQueueDoNotTurnOrphansAway) {
  Signals signals;
  const auto server = JoinServer::Listen("127.0.0.1", 2);
  ASSERT_TRUE(server.ok());
  std::vector<Fd> strangers;
  // As an agent does it while it obeys its coordinator.
  for (int i = 0; i < 20; ++i) {
    strangers = Strangers((*server)->endpoint(), 100);
    ASSERT_TRUE((*server)->Serve().ok());
    ASSERT_TRUE((*server)->Serve().ok());
  }
  std::thread orphan(
      [&] { EXPECT_TRUE(Join((*server)->endpoint(), DescribeAgent(2), nullptr, Soon()).ok()); });
  const auto requests = (*server)->GatherSome(signals, Soon(), 1, 1);
  orphan.join();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests.front().info.rank, 2);
}

TEST(JoinServer, WhoComesEarlyIsWelcomedWhenItIsTime) {
  Signals signals;
  const auto server = JoinServer::Listen("@", 2);
  ASSERT_TRUE(server.ok());
  std::atomic<bool> gave_up = false;
  std::thread orphan([&] {
    // A first try that gave up, and one that waits.
    EXPECT_FALSE(
        Join((*server)->endpoint(), DescribeAgent(2), nullptr, Deadline::AfterSeconds(0.1)).ok());
    gave_up = true;
    EXPECT_TRUE(Join((*server)->endpoint(), DescribeAgent(2), nullptr, Soon()).ok());
  });
  while (!gave_up) {
    ASSERT_TRUE((*server)->Serve().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto requests = (*server)->GatherSome(signals, Soon(), 1, 1);
  orphan.join();
  ASSERT_EQ(requests.size(), 1u);
}

TEST(JoinServer, OthersThanOurUserAreDroppedAtOnce) {
  const auto server = JoinServer::Listen("@", 1);
  ASSERT_TRUE(server.ok());
  constexpr int kImpossible = 77;
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    if (setresuid(65534, 65534, 65534) != 0) _exit(kImpossible);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = (*server)->endpoint().address;
    std::memcpy(address.sun_path + 1, name.data() + 1, name.size() - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) _exit(2);
    char byte = 0;
    _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 3);  // waits until it is dropped
  }
  int status = 0;
  while (waitpid(other, &status, WNOHANG) == 0) {
    ASSERT_TRUE((*server)->Serve().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kImpossible) GTEST_SKIP() << "only root may be somebody else";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(JoinServer, WithoutFilesItSaysHowManyItNeeds) {
  Signals signals;
  const auto server = JoinServer::Listen("127.0.0.1", 2);
  ASSERT_TRUE(server.ok());
  const std::vector<Fd> strangers = Strangers((*server)->endpoint(), 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(strangers.back().get() + 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto requests = (*server)->Gather(nullptr, signals, Soon());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(requests.ok());
  EXPECT_EQ(requests.status().code(), StatusCode::kEnvironment);
  EXPECT_NE(requests.status().message().find("raise the hard limit"), std::string::npos)
      << requests.status().message();
}

TEST(JoinServer, NamesWhoIsMissing) {
  Signals signals;
  const auto server = JoinServer::Listen("127.0.0.1", 2);
  ASSERT_TRUE(server.ok());
  const auto requests = (*server)->Gather(nullptr, signals, Deadline::AfterSeconds(0.1));
  ASSERT_FALSE(requests.ok());
  EXPECT_NE(requests.status().message().find("rank 1, 2 did not join"), std::string::npos)
      << requests.status().message();
  EXPECT_EQ(requests.status().code(), StatusCode::kEnvironment);
}

TEST(JoinServer, NoCoordinator) {
  Signals signals;
  LaunchContext context = ContextOf(1);
  context.job += "-nobody";
  const auto endpoint = FindEndpoint(context, signals, Deadline::AfterSeconds(0.2));
  ASSERT_FALSE(endpoint.ok());
  EXPECT_EQ(endpoint.status().code(), StatusCode::kEnvironment);
}

// A follower that is played word by word, in the server's own thread.
class Played {
 public:
  explicit Played(JoinServer& server)
      : server_(server),
        channel_(ConnectTo(server.endpoint(), Soon()).value(), kMostFrameBytes),
        nonces_{RandomBytes(), ""} {}

  // The server's challenge.
  std::optional<ChallengeFrame> SayHello() {
    channel_.Send(HelloFrame{kProtocolVersion, nonces_.follower});
    const std::optional<Frame> frame = Hear();
    if (!frame || !frame->is(FrameType::kChallenge)) return std::nullopt;
    std::optional<ChallengeFrame> challenge = Decode<ChallengeFrame>(frame->payload);
    if (challenge) nonces_.coordinator = challenge->nonce;
    return challenge;
  }
  JoinFrame ProofFor(int rank) const {
    const std::string request = Encode(JoinWords{DescribeAgent(rank), "", 0});
    return {ProofOfFollower(server_.endpoint().secret, nonces_, request), request};
  }
  void Send(const JoinFrame& join) { channel_.Send(join); }
  bool IsAdmittedWith(const JoinFrame& join) {
    Send(join);
    const std::optional<Frame> frame = Hear();
    return frame && frame->is(FrameType::kWelcome);
  }
  const Nonces& nonces() const { return nonces_; }

 private:
  // Nothing when the server dropped it.
  std::optional<Frame> Hear() {
    for (const Deadline deadline = Soon(); !deadline.Passed();) {
      EXPECT_TRUE(server_.Serve().ok());
      channel_.Fill();
      if (std::optional<Frame> frame = channel_.Take()) return frame;
      if (!channel_.open()) return std::nullopt;
    }
    ADD_FAILURE() << "neither an answer nor an end";
    return std::nullopt;
  }

  JoinServer& server_;
  Channel channel_;
  Nonces nonces_;
};

// One that has welcomed, so that who comes is told at once.
std::unique_ptr<JoinServer> Welcoming(int followers) {
  Signals signals;
  std::unique_ptr<JoinServer> server = JoinServer::Listen("127.0.0.1", followers).value();
  EXPECT_TRUE(server->GatherSome(signals, Deadline::AfterSeconds(0), 1, 1).empty());
  return server;
}

TEST(JoinServer, BothEndsProveTheSecretAndNeitherSendsIt) {
  const auto server = Welcoming(2);
  const std::string& secret = server->endpoint().secret;
  Played follower(*server);
  const auto challenge = follower.SayHello();
  ASSERT_TRUE(challenge.has_value());
  EXPECT_TRUE(IsSameProof(challenge->proof, ProofOfCoordinator(secret, follower.nonces())));
  const JoinFrame join = follower.ProofFor(1);
  EXPECT_EQ((Encode(*challenge) + Encode(join)).find(secret), std::string::npos);
  EXPECT_TRUE(follower.IsAdmittedWith(join));
}

TEST(JoinServer, AProofServesOnceAndForOneRequest) {
  const auto server = Welcoming(2);
  Played seen(*server), replaying(*server), echoing(*server), forging(*server);
  ASSERT_TRUE(seen.SayHello() && replaying.SayHello() && forging.SayHello());
  const auto challenge = echoing.SayHello();
  ASSERT_TRUE(challenge.has_value());
  EXPECT_FALSE(replaying.IsAdmittedWith(seen.ProofFor(1))) << "of another connection";
  EXPECT_FALSE(echoing.IsAdmittedWith({challenge->proof, echoing.ProofFor(1).request}));
  EXPECT_FALSE(forging.IsAdmittedWith({forging.ProofFor(1).proof, forging.ProofFor(2).request}));
  EXPECT_TRUE(seen.IsAdmittedWith(seen.ProofFor(1)));
}

TEST(JoinServer, WhoGaveUpBeforeItWasHeardIsNotAdmitted) {
  const auto server = Welcoming(2);
  std::optional<Played> leaving(*server);
  Played staying(*server);
  ASSERT_TRUE(leaving->SayHello() && staying.SayHello());
  leaving->Send(leaving->ProofFor(2));
  staying.Send(staying.ProofFor(1));
  leaving.reset();
  Signals signals;
  const auto requests = server->GatherSome(signals, Soon(), 1, 1);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests.front().info.rank, 1);
}

TEST(JoinServer, WhoListensInItsPlaceIsToldApart) {
  const auto server = JoinServer::Listen("127.0.0.1", 1);
  ASSERT_TRUE(server.ok());
  Endpoint of_another_launch = (*server)->endpoint();
  of_another_launch.secret = RandomBytes();
  std::atomic<bool> told = false;
  std::thread follower([&] {
    const auto channel = Join(of_another_launch, DescribeAgent(1), nullptr, Soon());
    EXPECT_FALSE(channel.ok());
    EXPECT_NE(channel.status().message().find("does not know this launch's secret"),
              std::string::npos)
        << channel.status().message();
    told = true;
  });
  Signals signals;
  while (!told) {
    EXPECT_FALSE((*server)->Gather(nullptr, signals, Deadline::AfterSeconds(0.1)).ok());
  }
  follower.join();
}

std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// Against another implementation of HMAC-SHA-256: Python's.
TEST(Proof, IsHmacSha256) {
  EXPECT_EQ(ProofOfFollower("secret", {"1234567890abcdef", "fedcba0987654321"}, "request"),
            FromHex("34f2f618ffcf72b356d0145878d387cb"
                    "c5c52c91dfea3c7e865d82e52d2ccc25"));
  EXPECT_NE(ProofOfCoordinator("secret", {"a", "b"}), ProofOfFollower("secret", {"a", "b"}, ""));
}

TEST(JoinServer, Secrets) {
  EXPECT_TRUE(IsSameProof("abc", "abc"));
  EXPECT_FALSE(IsSameProof("abc", "abd"));
  EXPECT_FALSE(IsSameProof("abc", "ab"));
  const auto a = JoinServer::Listen("127.0.0.1", 0), b = JoinServer::Listen("127.0.0.1", 0);
  EXPECT_NE((*a)->endpoint().secret, (*b)->endpoint().secret);
  const auto back = Decode<Endpoint>(Encode((*a)->endpoint()));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->port, (*a)->endpoint().port);
  EXPECT_FALSE(Decode<Endpoint>("nonsense").has_value());
}

}  // namespace
}  // namespace lockstep::control::rendezvous
