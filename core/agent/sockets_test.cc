// Sockets of this process, while data is written, read, and left unread.
#include "core/agent/sockets.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "gtest/gtest.h"

namespace lockstep::agent {
namespace {

struct Pair {
  Fd listening, client, server;
  std::string listens_on, client_address;
};

Pair Connect(std::uint32_t listen_address) {
  Pair pair;
  pair.listening = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  pair.client = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(listen_address);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(pair.listening.get(), any, sizeof address), 0);
  EXPECT_EQ(listen(pair.listening.get(), 4), 0);
  getsockname(pair.listening.get(), any, &length);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  pair.listens_on = FormatAddress(&address);
  EXPECT_EQ(connect(pair.client.get(), any, sizeof address), 0);
  getsockname(pair.client.get(), any, &length);
  pair.client_address = FormatAddress(&address);
  pair.server = Fd(accept4(pair.listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return pair;
}

std::optional<verdict::TcpSocket> Find(const std::string& local, const std::string& remote) {
  const std::vector<verdict::TcpSocket> all = SocketsOf(getpid());
  const auto found = std::find_if(all.begin(), all.end(), [&](const verdict::TcpSocket& socket) {
    return socket.local == local && socket.remote == remote;
  });
  return found == all.end() ? std::nullopt : std::optional<verdict::TcpSocket>(*found);
}

TEST(Sockets, TellsWhatWasWrittenReceivedAndNotRead) {
  const Pair pair = Connect(INADDR_LOOPBACK);
  const std::string data(1000, 'x');
  ASSERT_EQ(send(pair.client.get(), data.data(), 1000, 0), 1000);
  ASSERT_EQ(send(pair.server.get(), data.data(), 77, 0), 77);
  char part[400];
  ASSERT_EQ(recv(pair.server.get(), part, sizeof part, MSG_WAITALL), 400);
  const auto client = Find(pair.client_address, pair.listens_on);
  const auto server = Find(pair.listens_on, pair.client_address);
  ASSERT_TRUE(client && server);
  EXPECT_EQ(client->written, 1000u);
  EXPECT_EQ(client->received, 77u);
  EXPECT_EQ(client->unread, 77u);
  EXPECT_EQ(server->received, 1000u);
  EXPECT_EQ(server->unread, 600u);
}

// A reader that does not read: what the kernels could not pass on is written, and not received.
TEST(Sockets, CountsWhatIsStillOnTheWay) {
  const Pair pair = Connect(INADDR_LOOPBACK);
  const std::string data(1 << 20, 'x');
  std::uint64_t written = 0;
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = send(pair.client.get(), data.data(), data.size(), MSG_DONTWAIT);
    if (n > 0) written += static_cast<std::uint64_t>(n);
  }
  const auto client = Find(pair.client_address, pair.listens_on);
  const auto server = Find(pair.listens_on, pair.client_address);
  ASSERT_TRUE(client && server);
  EXPECT_EQ(client->written, written);
  EXPECT_LT(server->received, written);
  EXPECT_EQ(server->unread, server->received);
}

TEST(Sockets, ListenersAreThereOnEveryAddress) {
  const Pair pair = Connect(INADDR_ANY);
  EXPECT_TRUE(Find(pair.listens_on, ""));
  EXPECT_NE(pair.listens_on.find('%'), std::string::npos) << "loopback addresses name their host";
}

// A kernel answers for a process that does not accept.
TEST(Sockets, AListenerShowsConnectionsThatWait) {
  Pair pair = Connect(INADDR_LOOPBACK);
  EXPECT_EQ(Find(pair.listens_on, "")->unread, 0u);
  const Fd second(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  getsockname(pair.listening.get(), any, &length);
  ASSERT_EQ(connect(second.get(), any, length), 0);
  EXPECT_EQ(Find(pair.listens_on, "")->unread, 1u);
  getsockname(second.get(), any, &length);
  EXPECT_GT(Find(FormatAddress(&address), pair.listens_on)->round_trip_us, 0u);
}

// Whether it is a look that searches, or one that asks for what is known.
TEST(Sockets, LooksAgainAndAgainShowTheSame) {
  Pair pair = Connect(INADDR_LOOPBACK);
  constexpr int kLeast = 4, kMost = 16;
  SocketLooks looks(getpid(), kLeast, kMost);
  const auto seen = [&](const std::string& local) -> std::optional<verdict::TcpSocket> {
    for (const verdict::TcpSocket& socket : looks.Look()) {
      if (socket.local == local) return socket;
    }
    return std::nullopt;
  };
  for (std::uint64_t sent = 0; sent < 40; ++sent) {
    const auto client = seen(pair.client_address);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->remote, pair.listens_on);
    EXPECT_EQ(client->written, sent);
    ASSERT_EQ(send(pair.client.get(), "x", 1, 0), 1);
  }
  EXPECT_TRUE(seen(pair.listens_on)) << "who listens, too";
  // It waits for its peer to end, or for the last segments to be gone, and is nobody's.
  char all[40];
  ASSERT_EQ(recv(pair.server.get(), all, sizeof all, MSG_WAITALL), 40);
  pair.client.Reset();
  EXPECT_FALSE(seen(pair.client_address));
  pair.server.Reset();
  EXPECT_FALSE(seen(pair.client_address));
  // A new one is found as soon as a search may follow.
  const Pair later = Connect(INADDR_LOOPBACK);
  bool found = false;
  for (int i = 0; i < kLeast; ++i) found = found || seen(later.client_address);
  EXPECT_TRUE(found);
}

// A socket that neither listens nor connects is in no table, however often one looks.
class LateSocket : public testing::Test {
 protected:
  sockaddr* any() { return reinterpret_cast<sockaddr*>(&address_); }
  Fd Bind() {
    Fd made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address_ = {};
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(made.get(), any(), length_), 0);
    EXPECT_EQ(getsockname(made.get(), any(), &length_), 0);
    return made;
  }
  bool Listens() {
    const std::string name = FormatAddress(&address_);
    return std::ranges::any_of(looks_.Look(), [&](const verdict::TcpSocket& one) {
      return one.local == name && one.remote.empty();
    });
  }

  sockaddr_in address_{};
  socklen_t length_ = sizeof address_;
  SocketLooks looks_{getpid(), 1, 1000};
};

TEST_F(LateSocket, IsFoundWhenItConnects) {
  const Fd listening = Bind();
  ASSERT_EQ(listen(listening.get(), 4), 0);
  const auto connections = [&] {
    return std::ranges::count(looks_.Look(), FormatAddress(&address_), &verdict::TcpSocket::remote);
  };
  const Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int look = 0; look < 3; ++look) EXPECT_EQ(connections(), 0);
  ASSERT_EQ(connect(client.get(), any(), length_), 0);
  EXPECT_EQ(connections(), 1);
}

TEST_F(LateSocket, IsFoundWhenItListens) {
  for (int looks = 0; looks < 4; ++looks) {
    const Fd listening = Bind();
    for (int look = 0; look < looks; ++look) EXPECT_FALSE(Listens());
    ASSERT_EQ(listen(listening.get(), 4), 0);
    EXPECT_TRUE(Listens()) << "after " << looks << " looks";
  }
}

TEST_F(LateSocket, IsFoundUnderADescriptorThatWasAnothers) {
  Fd first = Bind();
  const int number = first.get();
  ASSERT_EQ(listen(number, 4), 0);
  EXPECT_TRUE(Listens());
  EXPECT_TRUE(Listens());
  first.Reset();
  const Fd second = Bind();
  ASSERT_EQ(second.get(), number);
  ASSERT_EQ(listen(number, 4), 0);
  EXPECT_TRUE(Listens());
}

TEST(Sockets, OnlyThoseOfTheProcess) {
  const pid_t other = fork();
  if (other == 0) {
    for (int fd = 3; fd < 64; ++fd) close(fd);
    pause();
    _exit(0);
  }
  const Pair pair = Connect(INADDR_LOOPBACK);
  EXPECT_TRUE(SocketsOf(other).empty());
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_TRUE(SocketsOf(other).empty());
}

}  // namespace
}  // namespace lockstep::agent
