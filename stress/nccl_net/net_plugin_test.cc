// The network as NCCL drives it: found by its name, connected, and told to be ill.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "stress/nccl_net/net_abi.h"
#include "stress/nccl_net/net_fault.h"

namespace lockstep::stress::nccl_net {
namespace {

constexpr double kLongSeconds = 30;       // of a busy machine
constexpr double kPatienceSeconds = 0.1;  // in which what is ill must not come

const Net& Plugin() {
  static const Net* const net = [] {
    void* const library = dlopen("stress/nccl_net/libnccl-net-lockstep.so", RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return static_cast<const Net*>(dlsym(library, "ncclNetPlugin_v6"));
  }();
  return *net;
}

class NetPlugin : public testing::Test {
 protected:
  void TearDown() override {
    if (sender_ != nullptr) Plugin().close_sender(sender_);
    if (receiver_ != nullptr) Plugin().close_receiver(receiver_);
    if (listener_ != nullptr) Plugin().close_listener(listener_);
    unsetenv("LOCKSTEP_NET_FAULT");
  }
  // False: not within `seconds`.
  bool Connect(const std::string& fault, double seconds = kLongSeconds) {
    setenv("LOCKSTEP_NET_FAULT", fault.c_str(), 1);
    EXPECT_EQ(Plugin().init(nullptr), kSuccess);
    char handle[kHandleBytes] = {};
    EXPECT_EQ(Plugin().listen(0, handle, &listener_), kSuccess);
    const Deadline deadline = Deadline::AfterSeconds(seconds);
    while ((sender_ == nullptr || receiver_ == nullptr) && !deadline.Passed()) {
      if (sender_ == nullptr) {
        EXPECT_EQ(Plugin().connect(0, handle, &sender_), kSuccess);
      }
      if (receiver_ == nullptr) {
        EXPECT_EQ(Plugin().accept(listener_, &receiver_), kSuccess);
      }
    }
    return sender_ != nullptr && receiver_ != nullptr;
  }
  void* Send(std::vector<char>& data) {
    void* request = nullptr;
    EXPECT_EQ(
        Plugin().isend(sender_, data.data(), static_cast<int>(data.size()), 0, nullptr, &request),
        kSuccess);
    return request;
  }
  void* Receive(std::vector<char>& data) {
    void* request = nullptr;
    void* pointer = data.data();
    int bytes = static_cast<int>(data.size());
    int tag = 0;
    void* memory = nullptr;
    EXPECT_EQ(Plugin().irecv(receiver_, 1, &pointer, &bytes, &tag, &memory, &request), kSuccess);
    return request;
  }
  // Until both are done; the first code that is no success, or kInternalError when time is up.
  static Code Await(void* send, void* receive, int& received, double seconds = kLongSeconds) {
    const Deadline deadline = Deadline::AfterSeconds(seconds);
    int sent = 0, came = 0;
    while ((sent == 0 || came == 0) && !deadline.Passed()) {
      const Code of_send = sent != 0 ? kSuccess : Plugin().test(send, &sent, nullptr);
      const Code of_receive = came != 0 ? kSuccess : Plugin().test(receive, &came, &received);
      if (of_send != kSuccess) return of_send;
      if (of_receive != kSuccess) return of_receive;
    }
    return sent != 0 && came != 0 ? kSuccess : kInternalError;
  }

  void* listener_ = nullptr;
  void* sender_ = nullptr;
  void* receiver_ = nullptr;
};

std::vector<char> Pattern(std::size_t bytes) {
  std::vector<char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 31 + bytes);
  return data;
}

TEST_F(NetPlugin, SaysWhatItIs) {
  int devices = 0;
  EXPECT_EQ(Plugin().devices(&devices), kSuccess);
  EXPECT_EQ(devices, 1);
  Properties properties{};
  EXPECT_EQ(Plugin().get_properties(0, &properties), kSuccess);
  EXPECT_STREQ(properties.name, "lockstep");
  EXPECT_EQ(properties.pointers, kHostPointers);
  EXPECT_STREQ(Plugin().name, "Lockstep");
}

TEST_F(NetPlugin, CarriesMessagesOfAllSizesInOrder) {
  ASSERT_TRUE(Connect(""));
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{5'000'000}}) {
    std::vector<char> from = Pattern(bytes), to(bytes + 7);
    int received = -1;
    ASSERT_EQ(Await(Send(from), Receive(to), received), kSuccess) << bytes;
    EXPECT_EQ(received, static_cast<int>(bytes));
    to.resize(bytes);
    EXPECT_EQ(from, to);
  }
  // As many at a time as NCCL has under way.
  std::vector<std::vector<char>> from(32, Pattern(1000)), to(32, std::vector<char>(1000));
  std::vector<void*> sends, receives;
  for (int i = 0; i < 32; ++i) {
    from[i][0] = static_cast<char>(i);
    sends.push_back(Send(from[i]));
    receives.push_back(Receive(to[i]));
    ASSERT_TRUE(sends.back() != nullptr && receives.back() != nullptr);
  }
  for (int i = 0; i < 32; ++i) {
    int received = 0;
    ASSERT_EQ(Await(sends[i], receives[i], received), kSuccess);
    EXPECT_EQ(from[i], to[i]);
  }
}

TEST_F(NetPlugin, DelaysFromTheNthOn) {
  ASSERT_TRUE(Connect("delay:after=2:ms=50"));
  std::vector<char> from = Pattern(100), to(100);
  int received = 0;
  ASSERT_EQ(Await(Send(from), Receive(to), received), kSuccess);
  const std::int64_t began_ns = MonotonicNs();
  ASSERT_EQ(Await(Send(from), Receive(to), received), kSuccess);
  EXPECT_GE(MonotonicNs() - began_ns, 50'000'000);
  EXPECT_EQ(from, to);
}

TEST_F(NetPlugin, DropsFromTheNthOn) {
  ASSERT_TRUE(Connect("drop:after=2"));
  std::vector<char> from = Pattern(100), to(100);
  int received = 0;
  ASSERT_EQ(Await(Send(from), Receive(to), received), kSuccess);
  void* const send = Send(from);
  void* const receive = Receive(to);
  EXPECT_EQ(Await(send, receive, received, kPatienceSeconds), kInternalError);
  int done = 1;
  EXPECT_EQ(Plugin().test(send, &done, nullptr), kSuccess);
  EXPECT_EQ(done, 0);
}

TEST_F(NetPlugin, FailsFromTheNthOn) {
  ASSERT_TRUE(Connect("fail:after=2"));
  std::vector<char> from = Pattern(100), to(100);
  int received = 0;
  ASSERT_EQ(Await(Send(from), Receive(to), received), kSuccess);
  EXPECT_EQ(Await(Send(from), Receive(to), received), kSystemError);
}

TEST_F(NetPlugin, ConnectingStalls) {
  EXPECT_FALSE(Connect("stall", kPatienceSeconds));
  EXPECT_EQ(sender_, nullptr);
}

TEST_F(NetPlugin, APeerThatIsGoneIsAnError) {
  ASSERT_TRUE(Connect(""));
  std::vector<char> to(100);
  void* const receive = Receive(to);
  Plugin().close_sender(sender_);
  sender_ = nullptr;
  int done = 0;
  const Deadline deadline = Deadline::AfterSeconds(kLongSeconds);
  Code code = kSuccess;
  while (code == kSuccess && !deadline.Passed()) code = Plugin().test(receive, &done, nullptr);
  EXPECT_EQ(code, kSystemError);
}

TEST_F(NetPlugin, AnOrderThatIsNotUnderstoodIsNoHealthyNetwork) {
  for (const char* text : {"dely", "delay:ms=x", "drop:after", "drop:when=3"}) {
    setenv("LOCKSTEP_NET_FAULT", text, 1);
    EXPECT_EQ(Plugin().init(nullptr), kSystemError) << text;
  }
}

}  // namespace
}  // namespace lockstep::stress::nccl_net
