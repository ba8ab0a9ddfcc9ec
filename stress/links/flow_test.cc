// What a rule does to the bytes of a flow, on a clock of the test's own.
#include "stress/links/flow.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/fd.h"
#include "gtest/gtest.h"

namespace lockstep::stress::links {
namespace {

constexpr int kPeer = 3;
constexpr std::int64_t kMs = 1'000'000;

class FlowTest : public testing::Test {
 protected:
  FlowTest() : into_(Pair()), from_(Pair()), flow_(into_[1].get(), from_[0].get(), true) {}

  static std::vector<Fd> Pair() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    std::vector<Fd> pair;
    for (const int fd : fds) pair.emplace_back(fd);
    return pair;
  }
  void Apply(LinkRule rule) {
    rule.id = 1;
    rule.peer = kPeer;
    flow_.SetRules({{1, rule}}, kPeer);
  }
  // Sends `bytes`; when all of them have come, in ns of a clock that waits for nobody.
  std::int64_t Pass(std::size_t bytes) {
    const std::string text(bytes, 'x');
    std::size_t sent = 0, got = 0;
    while (got < bytes) {
      const ssize_t n = send(into_[0].get(), text.data() + sent, bytes - sent, MSG_NOSIGNAL);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if (flow_.wants_input()) flow_.Read(scratch_, now_ns_);
      flow_.Write(now_ns_);
      std::string come(bytes, ' ');
      const ssize_t m = recv(from_[1].get(), come.data(), bytes - got, 0);
      if (m > 0) {
        got += static_cast<std::size_t>(m);
        continue;
      }
      const std::optional<std::int64_t> due = flow_.due_ns();
      if (sent == bytes && !due) break;
      if (due && (sent == bytes || !flow_.wants_input())) now_ns_ = std::max(now_ns_, *due);
    }
    EXPECT_EQ(got, bytes);
    return now_ns_;
  }

  std::vector<Fd> into_, from_;
  Flow flow_;
  std::vector<char> scratch_ = std::vector<char>(Flow::kReadBytes);
  std::int64_t now_ns_ = 0;
};

TEST_F(FlowTest, WithoutARuleNothingWaits) { EXPECT_EQ(Pass(5 << 20), 0); }

TEST_F(FlowTest, DelaysByWhatTheRuleSays) {
  Apply({.incoming = false, .delay_s = 0.2});
  EXPECT_EQ(Pass(100), 200 * kMs);
  EXPECT_EQ(flow_.TakeTouched(), (std::map<int, std::uint64_t>{{1, 100}}));
  Apply({.outgoing = false, .delay_s = 0.2});
  EXPECT_EQ(Pass(100), 200 * kMs) << "the other direction";
}

TEST_F(FlowTest, LimitsTheRate) {
  Apply({.rate_bytes_per_s = 4 << 20});
  EXPECT_NEAR(static_cast<double>(Pass(2 << 20)), 500.0 * kMs, kMs);
}

TEST_F(FlowTest, LossCostsRetransmissionsAndNoByte) {
  Apply({.loss = 0.5, .seed = 7});
  int late = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t before = now_ns_;
    const std::int64_t took = Pass(100) - before;
    EXPECT_TRUE(took == 0 || took == 200 * kMs) << took;
    late += took > 0 ? 1 : 0;
  }
  EXPECT_GT(late, 30);
  EXPECT_LT(late, 70);
}

}  // namespace
}  // namespace lockstep::stress::links
