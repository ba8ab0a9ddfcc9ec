// Streams, events and buffers of a simulated rank: as core/device/testing/device_contract.h asks,
// in virtual time.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/sim/sim_world.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace lockstep::comm::sim {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Runs the body as the one rank of a world; it must finish.
void RunAlone(const std::function<void(RankContext& context, device::Device& device)>& body) {
  SimWorld world({.ranks = 1});
  const SimReport report = world.Run([&](RankContext& context) {
    body(context, context.device());
    return OkStatus();
  });
  EXPECT_EQ(report.ranks[0].state, RankState::kFinished)
      << report.ranks[0].message << report.ranks[0].where;
}

Deadline Soon() { return Deadline::AfterSeconds(20); }

std::vector<std::unique_ptr<device::Stream>> StreamsOf(device::Device& device) {
  std::vector<std::unique_ptr<device::Stream>> streams;
  streams.push_back(device.NewStream());
  streams.push_back(device.NewInlineStream());
  return streams;
}

TEST(SimDeviceTest, BuffersAreAlignedAndErrorsNameSizes) {
  RunAlone([](RankContext&, device::Device& device) {
    for (const std::int64_t bytes : {0, 1, 4097, 3 << 20}) {
      const auto buffer = device.Allocate(bytes);
      ASSERT_TRUE(buffer.ok()) << buffer.status().message();
      EXPECT_EQ((*buffer)->bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*buffer)->data()) % 256, 0u);
    }
    const auto buffer = device.Allocate(std::int64_t{10} << 40);
    EXPECT_EQ(buffer.status().code(), StatusCode::kEnvironment);
    EXPECT_NE(buffer.status().message().find("10 TiB"), std::string::npos);
    EXPECT_EQ(device.Allocate(-1).status().code(), StatusCode::kInvalidInput);
  });
}

TEST(SimDeviceTest, WorkRunsInOrderBeyondTheCapacityOfAQueue) {
  RunAlone([](RankContext&, device::Device& device) {
    for (const auto& stream : StreamsOf(device)) {
      std::vector<int> order;
      for (int i = 0; i < 10'000; ++i) {
        stream->Enqueue([&order, i] {
          order.push_back(i);
          return OkStatus();
        });
      }
      ASSERT_TRUE(stream->Synchronize(Soon()).ok());
      ASSERT_EQ(order.size(), 10'000u);
      for (int i = 0; i < 10'000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    }
  });
}

TEST(SimDeviceTest, AFifoRunsBesideTheCaller) {
  RunAlone([](RankContext& context, device::Device& device) {
    const auto stream = device.NewStream();
    stream->Enqueue([&] {
      context.Sleep(30 * kMs);
      return OkStatus();
    });
    EXPECT_EQ(context.now_ns(), 0);
    EXPECT_EQ(stream->Synchronize(Deadline::AfterSeconds(0.02)).code(),
              StatusCode::kDeadlineExceeded);
    EXPECT_EQ(context.now_ns(), 20 * kMs);
    EXPECT_TRUE(stream->Synchronize(Soon()).ok());
    EXPECT_EQ(context.now_ns(), 30 * kMs);
  });
}

TEST(SimDeviceTest, AnErrorMakesTheStreamAndItsWaitersSick) {
  RunAlone([](RankContext&, device::Device& device) {
    for (const auto& stream : StreamsOf(device)) {
      int ran = 0;
      stream->Enqueue([] { return SystemFailed("first"); });
      stream->Enqueue([&ran] {
        ++ran;
        return SystemFailed("second");
      });
      EXPECT_EQ(stream->Synchronize(Soon()).message(), "first");
      EXPECT_EQ(ran, 0);
      const auto event = device.NewEvent();
      stream->Record(*event);
      EXPECT_EQ(event->Await(Soon()).message(), "first");
      EXPECT_FALSE(event->Reached());
      const auto other = device.NewStream();
      other->WaitFor(*event);
      EXPECT_EQ(other->Synchronize(Soon()).message(), "first");
    }
  });
}

TEST(SimDeviceTest, AnEventIsSetAfterEarlierWork) {
  RunAlone([](RankContext& context, device::Device& device) {
    for (const auto& stream : StreamsOf(device)) {
      const auto event = device.NewEvent();
      const Ticks before = NowTicks();
      stream->Enqueue([&] {
        context.Compute(5 * kMs);
        return OkStatus();
      });
      stream->Record(*event);
      ASSERT_TRUE(event->Await(Soon()).ok());
      EXPECT_EQ(event->ReachedAt(), before + 5 * kMs);
      event->Reset();
      EXPECT_FALSE(event->Reached());
      EXPECT_EQ(event->Await(Deadline::AfterSeconds(0.01)).code(), StatusCode::kDeadlineExceeded);
      stream->Record(*event);
      EXPECT_TRUE(event->Await(Soon()).ok());
    }
  });
}

TEST(SimDeviceTest, AStreamWaitsForAnEventOfAnother) {
  RunAlone([](RankContext& context, device::Device& device) {
    const auto compute = device.NewStream();
    const auto communication = device.NewStream();
    const auto event = device.NewEvent();
    int gradient = 0;
    int seen = -1;
    communication->WaitFor(*event);
    communication->Enqueue([&] {
      seen = gradient;
      return OkStatus();
    });
    compute->Enqueue([&] {
      context.Sleep(2 * kMs);
      gradient = 42;
      return OkStatus();
    });
    compute->Record(*event);
    ASSERT_TRUE(communication->Synchronize(Soon()).ok());
    EXPECT_EQ(seen, 42);
  });
}

TEST(SimDeviceTest, DestructionFinishesWorkAndGivesUpWhatNeverEnds) {
  RunAlone([](RankContext& context, device::Device& device) {
    int ran = 0;
    {
      const auto stream = device.NewStream();
      for (int i = 0; i < 100; ++i) {
        stream->Enqueue([&ran] {
          ++ran;
          return OkStatus();
        });
      }
    }
    EXPECT_EQ(ran, 100);
    const auto never = device.NewEvent();
    {
      const auto stream = device.NewStream();
      stream->WaitFor(*never);
    }
    EXPECT_EQ(context.now_ns(), 10'000 * kMs);
  });
}

}  // namespace
}  // namespace lockstep::comm::sim
