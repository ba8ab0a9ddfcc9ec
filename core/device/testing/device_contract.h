// What every device must do, as a test suite that each of them instantiates:
//   INSTANTIATE_TEST_SUITE_P(Host, DeviceContract, testing::Values(DeviceUnderTest{...}));
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/device/device.h"
#include "gtest/gtest.h"

namespace lockstep::device {

struct DeviceUnderTest {
  std::unique_ptr<Device> (*make)();
  // Copies between a buffer and host memory.
  void (*read)(Buffer& buffer, void* to, std::size_t bytes);
  void (*write)(Buffer& buffer, const void* from, std::size_t bytes);
};

class DeviceContract : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  static Deadline Soon() { return Deadline::AfterSeconds(20); }
  // A FIFO stream and, where there is one, an inline stream.
  std::vector<std::unique_ptr<Stream>> Streams() {
    std::vector<std::unique_ptr<Stream>> streams;
    streams.push_back(device_->NewStream());
    if (auto stream = device_->NewInlineStream()) streams.push_back(std::move(stream));
    return streams;
  }

  std::unique_ptr<Device> device_ = GetParam().make();
};

TEST_P(DeviceContract, BuffersHoldWhatWasWritten) {
  for (const std::int64_t bytes : {0, 1, 4096, 4097, 3 << 20}) {
    auto buffer = device_->Allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.status().message();
    ASSERT_EQ((*buffer)->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*buffer)->data()) % 256, 0u);
    std::vector<unsigned char> written(static_cast<std::size_t>(bytes));
    for (std::size_t i = 0; i < written.size(); ++i) {
      written[i] = static_cast<unsigned char>(i * 7 + 1);
    }
    GetParam().write(**buffer, written.data(), written.size());
    std::vector<unsigned char> got(written.size());
    GetParam().read(**buffer, got.data(), got.size());
    EXPECT_EQ(written, got);
  }
}

TEST_P(DeviceContract, MemoryThatIsNotThereIsAnEnvironmentErrorWithSizes) {
  const auto buffer = device_->Allocate(std::int64_t{10} << 40);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), StatusCode::kEnvironment);
  EXPECT_NE(buffer.status().message().find("10 TiB"), std::string::npos)
      << buffer.status().message();
  EXPECT_EQ(device_->Allocate(-1).status().code(), StatusCode::kInvalidInput);
}

TEST_P(DeviceContract, WorkRunsInOrder) {
  for (auto& stream : Streams()) {
    std::vector<int> order;  // only the stream touches it until Synchronize
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
}

TEST_P(DeviceContract, InlineWorkIsDoneOnReturnOnTheCallingThread) {
  const auto stream = device_->NewInlineStream();
  if (stream == nullptr) GTEST_SKIP() << "this device has no inline stream";
  EXPECT_TRUE(stream->inline_execution());
  std::thread::id where;
  stream->Enqueue([&where] {
    where = std::this_thread::get_id();
    return OkStatus();
  });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_P(DeviceContract, AFifoRunsBesideTheCaller) {
  const auto stream = device_->NewStream();
  EXPECT_FALSE(stream->inline_execution());
  std::atomic<bool> let_go{false};
  stream->Enqueue([&let_go] {
    const Deadline limit = Soon();
    while (!let_go && !limit.Passed()) std::this_thread::yield();
    return let_go ? OkStatus() : DeadlineExceeded("never let go");
  });
  EXPECT_EQ(stream->Synchronize(Deadline::AfterSeconds(0.02)).code(),
            StatusCode::kDeadlineExceeded);
  let_go = true;
  EXPECT_TRUE(stream->Synchronize(Soon()).ok());
}

TEST_P(DeviceContract, AnErrorMakesTheStreamSick) {
  for (auto& stream : Streams()) {
    std::atomic<int> ran{0};
    stream->Enqueue([] { return SystemFailed("first"); });
    stream->Enqueue([&ran] {
      ++ran;
      return SystemFailed("second");
    });
    EXPECT_EQ(stream->Synchronize(Soon()).message(), "first");
    EXPECT_EQ(stream->status().code(), StatusCode::kSystemFailed);
    EXPECT_EQ(ran, 0);
    const auto event = device_->NewEvent();
    stream->Record(*event);
    EXPECT_EQ(event->Await(Soon()).message(), "first");
    EXPECT_FALSE(event->Reached());
  }
}

TEST_P(DeviceContract, AnEventIsSetAfterEarlierWork) {
  for (auto& stream : Streams()) {
    const auto event = device_->NewEvent();
    EXPECT_FALSE(event->Reached());
    std::atomic<Ticks> worked_at{0};
    const Ticks before = NowTicks();
    stream->Enqueue([&worked_at] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      worked_at = NowTicks();
      return OkStatus();
    });
    stream->Record(*event);
    ASSERT_TRUE(event->Await(Soon()).ok());
    EXPECT_TRUE(event->Reached());
    EXPECT_GE(worked_at, before);
    EXPECT_GE(event->ReachedAt(), worked_at);
    EXPECT_LE(event->ReachedAt(), NowTicks());
    event->Reset();
    EXPECT_FALSE(event->Reached());
    EXPECT_EQ(event->Await(Deadline::AfterSeconds(0.01)).code(), StatusCode::kDeadlineExceeded);
    stream->Record(*event);
    EXPECT_TRUE(event->Await(Soon()).ok());
  }
}

TEST_P(DeviceContract, AStreamWaitsForAnEventOfAnother) {
  const auto compute = device_->NewStream();
  const auto communication = device_->NewStream();
  for (int round = 0; round < 50; ++round) {
    const auto event = device_->NewEvent();
    std::atomic<int> gradient{0};
    std::atomic<int> seen{-1};
    communication->WaitFor(*event);
    communication->Enqueue([&] {
      seen = gradient.load();
      return OkStatus();
    });
    compute->Enqueue([&] {
      if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      gradient = 42;
      return OkStatus();
    });
    compute->Record(*event);
    ASSERT_TRUE(communication->Synchronize(Soon()).ok());
    ASSERT_TRUE(compute->Synchronize(Soon()).ok());
    ASSERT_EQ(seen, 42);
  }
}

TEST_P(DeviceContract, AStreamMayBeLateToLookAtAnEventThatIsReset) {
  const auto compute = device_->NewStream();
  const auto communication = device_->NewStream();
  for (int round = 0; round < 50; ++round) {
    const auto event = device_->NewEvent();
    compute->Record(*event);
    ASSERT_TRUE(event->Await(Soon()).ok());
    std::atomic<bool> let_go{false};
    communication->Enqueue([&let_go] {
      const Deadline limit = Soon();
      while (!let_go && !limit.Passed()) std::this_thread::yield();
      return OkStatus();
    });
    communication->WaitFor(*event);
    event->Reset();
    let_go = true;
    const Status status = communication->Synchronize(Soon());
    ASSERT_TRUE(status.ok()) << status.message();
    compute->Record(*event);
    ASSERT_TRUE(event->Await(Soon()).ok());
  }
}

TEST_P(DeviceContract, ASickStreamMakesItsWaitersSick) {
  const auto compute = device_->NewStream();
  const auto communication = device_->NewStream();
  const auto event = device_->NewEvent();
  communication->WaitFor(*event);
  compute->Enqueue([] { return SystemFailed("the kernel failed"); });
  compute->Record(*event);
  EXPECT_EQ(communication->Synchronize(Soon()).message(), "the kernel failed");
}

TEST_P(DeviceContract, DestructionFinishesQueuedWork) {
  std::atomic<int> ran{0};
  {
    const auto stream = device_->NewStream();
    for (int i = 0; i < 100; ++i) {
      stream->Enqueue([&ran] {
        ++ran;
        return OkStatus();
      });
    }
  }
  EXPECT_EQ(ran, 100);
}

}  // namespace lockstep::device
