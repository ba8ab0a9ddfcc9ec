// The places in gloo_layout.h, held against the installed gloo.
#include "watch/preload/gloo_layout.h"

#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/context.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/transport/unbound_buffer.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace lockstep::watch::preload {
namespace {

std::shared_ptr<gloo::Context> MakeContext() {
  auto context = std::make_shared<gloo::Context>(3, 7);
  context->setTimeout(std::chrono::milliseconds(1000));
  return context;
}

template <typename Value>
Value Read(const void* object, int place) {
  Value value;
  std::memcpy(&value, static_cast<const char*>(object) + place, sizeof value);
  return value;
}

class Buffer : public gloo::transport::UnboundBuffer {
 public:
  explicit Buffer(std::size_t bytes) : UnboundBuffer(nullptr, bytes) {}
  bool waitRecv(int*, std::chrono::milliseconds) override { return true; }
  bool waitSend(int*, std::chrono::milliseconds) override { return true; }
  void abortWaitRecv() override {}
  void abortWaitSend() override {}
  void send(int, std::uint64_t, std::size_t, std::size_t) override {}
  void recv(int, std::uint64_t, std::size_t, std::size_t) override {}
  void recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) override {}
};

template <typename Options>
class Layout {
 public:
  // What each call of the program sets is found where the layout says.
  static void Check(const OptionsLayout& layout) {
    if constexpr (std::is_same_v<Options, gloo::BarrierOptions>) return CheckBarrier(layout);
    const std::shared_ptr<gloo::Context> context = MakeContext();
    Options options(context);
    EXPECT_EQ(Read<const void*>(&options, 0), context.get());
    options.setTag(0x12345678);
    EXPECT_EQ(Read<std::uint32_t>(&options, layout.tag), 0x12345678u);
    if constexpr (requires { options.setRoot(5); }) {
      options.setRoot(5);
      EXPECT_EQ(Read<std::int32_t>(&options, layout.root), 5);
    } else {
      EXPECT_EQ(layout.root, kNowhere);
    }
    if constexpr (requires { options.template setOutput<double>(nullptr); }) {
      options.template setOutput<double>(std::make_unique<Buffer>(24 * sizeof(double)));
      EXPECT_EQ(Read<std::uint64_t>(&options, layout.element_size), sizeof(double));
      if (layout.elements != kNowhere) {
        EXPECT_EQ(Read<std::uint64_t>(&options, layout.elements), 24u);
      }
    }
  }

 private:
  // Its constructor needs a network.
  static void CheckBarrier(const OptionsLayout& layout) {
    struct Open : gloo::BarrierOptions {
      static int Context() { return offsetof(Open, context); }
      static int Tag() { return offsetof(Open, tag); }
    };
    EXPECT_EQ(Open::Context(), 0);
    EXPECT_EQ(Open::Tag(), layout.tag);
  }
};

TEST(GlooLayout, ContextsSayTheirRankAndSize) {
  const std::shared_ptr<gloo::Context> context = MakeContext();
  EXPECT_EQ(Read<std::int32_t>(context.get(), kContextRank), 3);
  EXPECT_EQ(Read<std::int32_t>(context.get(), kContextSize), 7);
}

TEST(GlooLayout, ContextsAndBuffersKnowTheirTransport) {
  struct Open : gloo::Context {
    using gloo::Context::Context;
    int Transport() const {
      return static_cast<int>(reinterpret_cast<const char*>(&transportContext_) -
                              reinterpret_cast<const char*>(this));
    }
  };
  EXPECT_EQ(Open(0, 1).Transport(), kContextTransport);
  const Buffer buffer(4711);
  EXPECT_EQ(Read<std::uint64_t>(&buffer, kBufferBytes), 4711u);
  // TCP's buffer goes on with it; its own header is not installed whole.
  EXPECT_EQ(sizeof(gloo::transport::UnboundBuffer), kBufferTransport);
}

#define LOCKSTEP_CHECK(NAME, OPTIONS, SYMBOL, CALL, ...) \
  TEST(GlooLayout, NAME) { Layout<gloo::OPTIONS>::Check(OptionsLayout{__VA_ARGS__}); }
LOCKSTEP_GLOO_COLLECTIVES(LOCKSTEP_CHECK)

}  // namespace
}  // namespace lockstep::watch::preload
