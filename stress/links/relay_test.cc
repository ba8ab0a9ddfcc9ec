// A relay between real sockets of this process: what it passes, delays, holds and tells.
#include "stress/links/relay.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/agent/sockets.h"
#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/fd.h"
#include "core/base/random.h"
#include "gtest/gtest.h"
#include "stress/links/link_hello.h"

namespace lockstep::stress::links {
namespace {

constexpr int kRelayPeer = 3;

// One relay for all tests.
Relay& TheRelay() {
  static const std::unique_ptr<Relay> relay = [] {
    auto started = Relay::Start();
    EXPECT_TRUE(started.ok());
    setenv(kLinksVariable, fmt::format("{}", started.value()->port()).c_str(), 1);
    return std::move(started).value();
  }();
  return *relay;
}

constexpr double kLongSeconds = 60;  // for what comes, on a busy machine, too
constexpr int kLongMs = 60'000;

std::optional<RelayReport> AwaitReport(RelayReport::Kind kind, double seconds = kLongSeconds) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  while (!deadline.Passed()) {
    pollfd item{TheRelay().fd(), POLLIN, 0};
    poll(&item, 1, deadline.RemainingMs());
    for (RelayReport& report : TheRelay().TakeReports()) {
      if (report.kind == kind) return report;
    }
  }
  return std::nullopt;
}

sockaddr_in Loopback(std::uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A connection through the relay, whose far end is `server`.
class RelayTest : public testing::Test {
 protected:
  void SetUp() override {
    TheRelay().Clear();
    Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    destination_ = Loopback();
    socklen_t length = sizeof destination_;
    auto* const any = reinterpret_cast<sockaddr*>(&destination_);
    ASSERT_EQ(bind(listening.get(), any, length), 0);
    ASSERT_EQ(listen(listening.get(), 4), 0);
    getsockname(listening.get(), any, &length);
    client_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    auto connected = std::async(std::launch::async,
                                [&] { return connect(client_.get(), any, sizeof destination_); });
    const auto ask = AwaitReport(RelayReport::Kind::kAsk);
    ASSERT_TRUE(ask);
    EXPECT_EQ(ask->endpoint, agent::FormatAddress(&destination_));
    TheRelay().Answer(ask->connection, kRelayPeer);
    ASSERT_EQ(connected.get(), 0);
    server_ = Fd(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ASSERT_TRUE(server_.valid());
  }

  void Apply(LinkRule rule) {
    rule.id = ++last_rule_;
    TheRelay().Apply(rule);
    ASSERT_TRUE(AwaitReport(RelayReport::Kind::kApplied));
  }

  // How long `text` takes, in seconds; none when it does not come within `limit`.
  static std::optional<double> Time(const Fd& from, const Fd& to, const std::string& text,
                                    double limit = kLongSeconds) {
    const std::int64_t began = MonotonicNs();
    const Deadline deadline = Deadline::AfterSeconds(limit);
    std::size_t sent = 0, got = 0;
    std::string all(text.size(), '\0');
    while (got < text.size()) {
      const ssize_t n = send(from.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      const ssize_t m = recv(to.get(), all.data() + got, all.size() - got, 0);
      if (m > 0) got += static_cast<std::size_t>(m);
      if (m == 0 || deadline.Passed()) return std::nullopt;
      if (m > 0) continue;
      pollfd items[] = {{to.get(), POLLIN, 0}, {sent < text.size() ? from.get() : -1, POLLOUT, 0}};
      poll(items, 2, std::min(deadline.RemainingMs(), 100));
    }
    EXPECT_EQ(all, text);
    return static_cast<double>(MonotonicNs() - began) * 1e-9;
  }

  // What the relay says of the connection, when it has counted so many bytes: bytes may come a
  // moment before.
  static RelayedNames Named(std::uint64_t out_bytes, std::uint64_t in_bytes) {
    const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
    while (!deadline.Passed()) {
      for (const RelayedNames& names : TheRelay().Names()) {
        if (names.out.bytes == out_bytes && names.in.bytes == in_bytes) return names;
      }
      usleep(1000);
    }
    ADD_FAILURE() << "the relay never counted that";
    return {};
  }

  static inline int last_rule_ = 0;
  sockaddr_in destination_{};
  Fd client_, server_;
};

// The threads of this process beside the caller: how many want a processor, and how often they
// were given one.
struct Others {
  int awake = 0;
  long turns = 0;
};
Others OtherThreads() {
  Others others;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (entry.path().filename() == std::to_string(gettid())) continue;
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
    others.awake += line.find(") S ") == std::string::npos ? 1 : 0;
    long ran = 0, waited = 0, turns = 0;
    std::ifstream(entry.path() / "schedstat") >> ran >> waited >> turns;
    others.turns += turns;
  }
  return others;
}

std::string Noise(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(Mix64(i) >> 56);
  return text;
}

TEST_F(RelayTest, PassesEverythingBothWaysAndNamesBothEnds) {
  EXPECT_TRUE(Time(client_, server_, Noise(20 << 20)));
  EXPECT_TRUE(Time(server_, client_, Noise(20 << 20)));
  sockaddr_in peer{}, seen{};
  socklen_t length = sizeof peer;
  ASSERT_EQ(getpeername(client_.get(), reinterpret_cast<sockaddr*>(&peer), &length), 0);
  EXPECT_EQ(agent::FormatAddress(&peer), agent::FormatAddress(&destination_)) << "not the relay";
  EXPECT_TRUE((fcntl(client_.get(), F_GETFL) & O_NONBLOCK) != 0) << "as it was";
  ASSERT_EQ(getpeername(server_.get(), reinterpret_cast<sockaddr*>(&seen), &length), 0);
  const std::vector<RelayedNames> all = TheRelay().Names();
  std::vector<RelayedNames> names;
  for (const RelayedNames& name : all) {
    if (!name.worker.empty()) names.push_back(name);
  }
  EXPECT_EQ(all.size(), 2u) << "also what was listened on";
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].local, agent::FormatAddress(&seen));
  EXPECT_EQ(names[0].remote, agent::FormatAddress(&destination_));
  // The end of the stream, too.
  client_.Reset();
  pollfd item{server_.get(), POLLIN, 0};
  ASSERT_EQ(poll(&item, 1, kLongMs), 1);
  char byte;
  EXPECT_EQ(recv(server_.get(), &byte, 1, 0), 0);
}

TEST_F(RelayTest, ConnectTellsThatNobodyListens) {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in nobody = Loopback();
  // Its port is nobody else's as long as it has it, and it does not listen.
  const Fd reserved(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  socklen_t length = sizeof nobody;
  ASSERT_EQ(bind(reserved.get(), reinterpret_cast<sockaddr*>(&nobody), length), 0);
  getsockname(reserved.get(), reinterpret_cast<sockaddr*>(&nobody), &length);
  auto connected = std::async(std::launch::async, [&] {
    return connect(fd.get(), reinterpret_cast<sockaddr*>(&nobody), sizeof nobody) == 0 ? 0 : errno;
  });
  const auto ask = AwaitReport(RelayReport::Kind::kAsk);
  ASSERT_TRUE(ask);
  TheRelay().Answer(ask->connection, -1);
  EXPECT_EQ(connected.get(), ECONNREFUSED);
}

// How much a rule delays is a matter of flow_test, on a clock of its own.
TEST_F(RelayTest, DelaysOneDirectionAndHeals) {
  Apply({.peer = kRelayPeer, .incoming = false, .delay_s = 0.2});
  EXPECT_GE(Time(client_, server_, "late").value_or(0), 0.2) << "a load only adds";
  EXPECT_TRUE(
      std::ranges::count(TheRelay().TakeReports(), RelayReport::Kind::kTouched, &RelayReport::kind))
      << "told before the bytes come";
  EXPECT_TRUE(Time(server_, client_, "at once"));
  const RelayedNames delayed = Named(4, 7);
  EXPECT_NEAR(delayed.out.byte_s, 4 * 0.2, 1e-6);
  EXPECT_EQ(delayed.in.byte_s, 0);
  TheRelay().Heal(last_rule_);
  EXPECT_TRUE(Time(client_, server_, "healed"));
  EXPECT_NEAR(Named(10, 7).out.byte_s, 4 * 0.2, 1e-6) << "nothing more is held back";
}

TEST_F(RelayTest, OneDirectionIsDelayedUntilItIsHealed) {
  Apply({.peer = kRelayPeer, .incoming = false, .delay_s = 3600});
  ASSERT_EQ(send(client_.get(), "an hour later", 13, MSG_NOSIGNAL), 13);
  EXPECT_TRUE(AwaitReport(RelayReport::Kind::kTouched));
  EXPECT_TRUE(Time(server_, client_, "at once"));
  char text[13];
  EXPECT_EQ(recv(server_.get(), text, sizeof text, 0), -1) << "it is still on its way";
  TheRelay().Heal(last_rule_);
  pollfd item{server_.get(), POLLIN, 0};
  ASSERT_EQ(poll(&item, 1, kLongMs), 1);
  EXPECT_EQ(recv(server_.get(), text, sizeof text, 0), 13);
}

// However long it has to wait for a processor.
TEST_F(RelayTest, ItsLedgerTellsWhatItWasToldAlone) {
  EXPECT_TRUE(Time(client_, server_, Noise(1 << 20)));
  EXPECT_TRUE(Time(server_, client_, Noise(1 << 20)));
  const RelayedNames names = Named(1 << 20, 1 << 20);
  EXPECT_EQ(names.out.byte_s, 0);
  EXPECT_EQ(names.in.byte_s, 0);
  EXPECT_EQ(names.out.lost, 0u);
  EXPECT_GT(TheRelay().thread(), 0);
  EXPECT_NE(TheRelay().thread(), gettid());
}

TEST_F(RelayTest, ARuleForAnotherPeerMeetsNothing) {
  Apply({.peer = kRelayPeer + 1, .down = true});
  EXPECT_TRUE(Time(client_, server_, "through"));
  EXPECT_FALSE(AwaitReport(RelayReport::Kind::kTouched, 0.1));
}

TEST_F(RelayTest, DownHoldsEverythingUntilItIsHealed) {
  Apply({.peer = kRelayPeer, .outgoing = false, .down = true});
  EXPECT_FALSE(AwaitReport(RelayReport::Kind::kTouched, 0.05)) << "nothing was sent yet";
  EXPECT_FALSE(Time(server_, client_, "held", 0.1));
  EXPECT_TRUE(AwaitReport(RelayReport::Kind::kTouched));
  EXPECT_TRUE(Time(client_, server_, "the other way"));
  // Also that its end is gone.
  server_.Reset();
  pollfd item{client_.get(), POLLIN, 0};
  EXPECT_EQ(poll(&item, 1, 100), 0);
  TheRelay().Heal(last_rule_);
  char text[8];
  ASSERT_EQ(poll(&item, 1, kLongMs), 1);
  EXPECT_EQ(recv(client_.get(), text, sizeof text, 0), 4);
  ASSERT_EQ(poll(&item, 1, kLongMs), 1);
  EXPECT_EQ(recv(client_.get(), text, sizeof text, 0), 0);
}

TEST_F(RelayTest, LimitsTheRate) {
  Apply({.peer = kRelayPeer, .rate_bytes_per_s = 4 << 20});
  EXPECT_GE(Time(client_, server_, Noise(2 << 20)).value_or(0), 0.49) << "a load only adds";
}

TEST_F(RelayTest, LossCostsRetransmissionsAndNoByte) {
  Apply({.peer = kRelayPeer, .loss = 0.5, .seed = 7});
  int late = 0;
  for (int i = 0; i < 12; ++i) late += Time(client_, server_, "segment").value_or(0) >= 0.2 ? 1 : 0;
  const int lost = static_cast<int>(Named(12 * 7, 0).out.lost);
  EXPECT_GE(lost, 2);
  EXPECT_LE(lost, 11);
  EXPECT_GE(late, lost);
}

TEST_F(RelayTest, ResetBreaksBothEnds) {
  TheRelay().Apply({.id = ++last_rule_, .peer = kRelayPeer, .reset = true});
  for (const Fd* end : {&client_, &server_}) {
    pollfd item{end->get(), POLLIN, 0};
    ASSERT_EQ(poll(&item, 1, kLongMs), 1);
    char byte;
    EXPECT_EQ(recv(end->get(), &byte, 1, 0), -1);
    EXPECT_EQ(errno, ECONNRESET);
  }
  EXPECT_TRUE(AwaitReport(RelayReport::Kind::kTouched));
}

TEST_F(RelayTest, ARelayWithNothingToDoSleeps) {
  Apply({.peer = kRelayPeer, .down = true});
  EXPECT_FALSE(Time(client_, server_, "held", 0.05));
  server_.Reset();
  // One that spins is never asleep, and one that asks again and again has hundreds of turns.
  const timespec pause{0, 25'000'000};
  const Deadline limit = Deadline::AfterSeconds(kLongSeconds);
  bool slept = false;
  while (!slept && !limit.Passed()) {
    nanosleep(&pause, nullptr);
    slept = OtherThreads().awake == 0;
  }
  EXPECT_TRUE(slept);
  const long before = OtherThreads().turns;
  for (int look = 0; look < 20; ++look) nanosleep(&pause, nullptr);
  EXPECT_LT(OtherThreads().turns - before, 50);
}

}  // namespace
}  // namespace lockstep::stress::links
