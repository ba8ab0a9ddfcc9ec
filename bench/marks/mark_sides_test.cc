// Marks on streams with handles that are the host's: as they are, and with a delay in each. Works
// and delays take virtual time only, so that no load of the machine is in a ratio.
#include "bench/marks/mark_sides.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/comm/null/null_communicator.h"
#include "core/comm/testing/native_fifo.h"
#include "core/device/host/host_device.h"
#include "core/stats/stats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::bench::marks {
namespace {

std::int64_t now_ns = 0;

Status Take(std::int64_t ns) {
  now_ns += ns;
  return OkStatus();
}

// A library whose collectives take their time on the stream's handle.
class Lasting final : public comm::Communicator {
 public:
  explicit Lasting(std::int64_t ns) : ns_(ns) {}
  const comm::Capabilities& capabilities() const override { return comm::null::NullCapabilities(); }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status Enqueue(const collective::Operation&, const collective::Buffers&,
                 device::Stream& stream) override {
    return dynamic_cast<device::NativeStream&>(stream).LaunchOn([this](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue([ns = ns_] { return Take(ns); });
      return OkStatus();
    });
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    return stream.Synchronize(deadline);
  }
  Status Abort() override { return OkStatus(); }
  Result<std::unique_ptr<comm::Communicator>> Split(int, int, Deadline) override {
    return Unsupported("none");
  }

 private:
  std::int64_t ns_;
};

// Whose marks take longer.
class SlowMarks final : public device::Stream, public device::NativeStream {
 public:
  explicit SlowMarks(std::int64_t ns) : ns_(ns) {}
  bool inline_execution() const override { return false; }
  void Enqueue(Work work) override { fifo_.Enqueue(std::move(work)); }
  void Record(device::Event& event) override { fifo_.Record(event); }
  void WaitFor(device::Event& event) override { fifo_.WaitFor(event); }
  Status Synchronize(Deadline deadline) override { return fifo_.Synchronize(deadline); }
  Status status() const override { return fifo_.status(); }
  Status LaunchOn(const Launch& launch) override { return fifo_.LaunchOn(launch); }
  Result<std::unique_ptr<device::StreamGraph>> Capture(const Launch& launch) override {
    return fifo_.Capture(launch);
  }
  Status WriteWord(std::uint64_t* word, std::uint64_t value) override {
    ++marks;
    LOCKSTEP_RETURN_IF_ERROR(Delay());
    return fifo_.WriteWord(word, value);
  }
  Status IncrementWord(std::uint64_t* word) override {
    ++marks;
    LOCKSTEP_RETURN_IF_ERROR(Delay());
    return fifo_.IncrementWord(word);
  }
  int marks = 0;

 private:
  Status Delay() {
    if (ns_ == 0) return OkStatus();
    return fifo_.LaunchOn([ns = ns_](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue([ns] { return Take(ns); });
      return OkStatus();
    });
  }
  comm::NativeFifo fifo_{
      device::host::HostDevice().NewInlineStream()};  // so that all is on one clock
  std::int64_t ns_;
};

class MarkingDevice final : public device::Device, public device::NativeDevice {
 public:
  std::string_view name() const override { return "marking"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t bytes) override {
    return host_.Allocate(bytes);
  }
  std::unique_ptr<device::Event> NewEvent() override { return host_.NewEvent(); }
  std::unique_ptr<device::Stream> NewStream() override { return host_.NewStream(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return host_.NewInlineStream(); }
  Status EnterThread() override { return OkStatus(); }
  Result<device::WordWriter> ShareMemory(std::span<std::byte>) override {
    return device::WordWriter::kKernel;
  }

 private:
  device::host::HostDevice host_;
};

constexpr std::int64_t kWorkNs = 1'000'000;

// What marks add to a work of a millisecond, in such works, with `delay_ns` in each.
double Added(std::int64_t delay_ns, int calls_in_graph) {
  alignas(4096) static std::byte marks[journal::kDeviceMarksBytes];
  MarkingDevice device;
  SlowMarks stream(delay_ns);
  Lasting library(kWorkNs);
  const auto sides = MarkSides::Open(library, device, stream, marks);
  EXPECT_TRUE(sides.ok()) << sides.status().message();
  EXPECT_EQ((*sides)->method(), journal::MarkMethod::kKernel);
  collective::Operation operation;
  operation.count = 2;
  float send[2] = {};
  float recv[2] = {};
  const MarkedWork work = {operation, {send, recv}, calls_in_graph};
  const auto without = (*sides)->Make(work, /*marked=*/false);
  EXPECT_TRUE(without.ok());
  EXPECT_EQ(stream.marks, 0);
  const auto with = (*sides)->Make(work, /*marked=*/true);
  EXPECT_TRUE(with.ok());
  EXPECT_GT(stream.marks, 0);
  const VirtualTime time(&now_ns);
  const auto times = MeasurePairs(**without, **with, {.pairs = 60, .batch = 1, .seed = 1});
  EXPECT_TRUE(times.ok()) << times.status().message();
  return stats::Median(times->added_ns) / times->without_ns;
}

TEST(MarkSides, MarksThatTakeNoTimeAddNothing) {
  EXPECT_DOUBLE_EQ(Added(0, 0), 0);
  EXPECT_DOUBLE_EQ(Added(0, 4), 0);
}

TEST(MarkSides, ADelayInTheMarksIsFound) {
  // Two marks of a call, and two of a replay beside: each is as long as a call.
  EXPECT_DOUBLE_EQ(Added(kWorkNs, 0), 2);
  EXPECT_DOUBLE_EQ(Added(kWorkNs, 4), (4 * 2 + 2) / 4.0);
}

TEST(MarkSides, ADeviceThatDoesNotMarkIsRefused) {
  alignas(4096) static std::byte marks[journal::kDeviceMarksBytes];
  device::host::HostDevice device;
  const auto stream = device.NewInlineStream();
  Lasting library(1);
  const auto sides = MarkSides::Open(library, device, *stream, marks);
  EXPECT_THAT(std::string(sides.status().message()), testing::HasSubstr("no streams that mark"));
}

}  // namespace
}  // namespace lockstep::bench::marks
