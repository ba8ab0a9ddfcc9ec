// Counts page faults to see that buffers are touched, and gives FIFO streams work that does not
// end. The general contract of devices is tested elsewhere.
#include "core/device/host/host_device.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>

#include "core/base/deadline.h"
#include "core/device/host/fifo_stream.h"
#include "gtest/gtest.h"

namespace lockstep::device::host {
namespace {

// A sanitizer's shadow of the pages would fault, too.
[[gnu::no_sanitize("thread"), gnu::no_sanitize("address")]] void Touch(volatile char* data,
                                                                       std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 4096) data[i] = 1;
}

TEST(HostBuffer, LeavesNoPageFaultForLater) {
  HostDevice device;
  auto buffer = device.Allocate(32 << 20);
  ASSERT_TRUE(buffer.ok()) << buffer.status().message();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*buffer)->data()) % 4096, 0u);
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  Touch(static_cast<char*>((*buffer)->data()), (*buffer)->bytes());
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 64);  // of 8,192 pages
}

TEST(HostBuffer, MoreThanIsAvailableIsRefusedWithoutTouchingIt) {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  std::int64_t total_kib = 0;
  meminfo >> name >> total_kib;
  HostDevice device;
  const auto buffer = device.Allocate(total_kib * 1024);  // some of it is always in use
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.status().code(), StatusCode::kEnvironment);
}

TEST(FifoStream, GivesUpWorkThatDoesNotEnd) {
  auto began = std::make_shared<std::atomic<bool>>(false);
  auto let_go = std::make_shared<std::atomic<bool>>(false);
  auto left = std::make_shared<std::atomic<bool>>(false);
  {
    FifoStream stream(0.05);  // its end does not wait for work that does not end
    stream.Enqueue([began, let_go, left] {
      *began = true;
      while (!*let_go) std::this_thread::yield();
      *left = true;
      return OkStatus();
    });
    while (!*began) std::this_thread::yield();  // work that waits in the queue is dropped
  }
  EXPECT_FALSE(*left);
  *let_go = true;
  const Deadline limit = Deadline::AfterSeconds(60);
  while (!*left && !limit.Passed()) std::this_thread::yield();
  EXPECT_TRUE(*left);
}

TEST(FifoStream, AWaitForAnEventThatNeverComesEndsWithTheStream) {
  HostDevice device;
  const auto event = device.NewEvent();
  {
    FifoStream stream(0.05);
    stream.WaitFor(*event);
  }
  EXPECT_FALSE(event->Reached());
}

}  // namespace
}  // namespace lockstep::device::host
