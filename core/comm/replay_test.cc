// Collectives that are captured once and replayed: what runs, and what the journal and the device's
// marks say of it.
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/null/null_communicator.h"
#include "core/comm/recorded.h"
#include "core/comm/testing/native_fifo.h"
#include "core/comm/work_graph.h"
#include "core/device/host/host_device.h"
#include "core/journal/device_marks.h"
#include "core/journal/journal.h"
#include "core/journal/purpose.h"
#include "gtest/gtest.h"

namespace lockstep::comm {
namespace {

constexpr std::size_t kReplayCapacity = 1024;

struct Script {
  int enqueued = 0;                // calls of the library
  std::vector<std::int64_t> ran;   // the counts of what ran, by the stream's thread
  int fail_at = -1;                // the how manieth run fails
  int refuse_at = -1;              // the how manieth call
  bool on_host = false;            // also where the stream has a handle
  std::atomic<bool> holds{false};  // what runs waits
  std::atomic<int> passes{0};      // but the first so many
};

class ReplayProbe final : public Communicator {
 public:
  explicit ReplayProbe(Script& script) : script_(script) {}
  const Capabilities& capabilities() const override { return null::NullCapabilities(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Enqueue(const collective::Operation& operation, const collective::Buffers&,
                 device::Stream& stream) override {
    if (script_.enqueued++ == script_.refuse_at) return SystemFailed("no such call");
    const device::Stream::Work work = [this, count = operation.count] { return Run(count); };
    auto* const native = dynamic_cast<device::NativeStream*>(&stream);
    if (native == nullptr || script_.on_host) return stream.Enqueue(work), stream.status();
    return native->LaunchOn([&](void* handle) {
      static_cast<device::Stream*>(handle)->Enqueue(work);
      return OkStatus();
    });
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    return stream.Synchronize(deadline);
  }
  Status Abort() override { return OkStatus(); }
  Result<std::unique_ptr<Communicator>> Split(int, int, Deadline) override {
    return Unsupported("none");
  }

 private:
  Status Run(std::int64_t count) {
    const Deadline limit = Deadline::AfterSeconds(20);
    const auto held = [&] { return script_.holds && script_.passes == 0; };
    while (held() && !limit.Passed()) std::this_thread::yield();
    if (script_.holds) --script_.passes;
    script_.ran.push_back(count);
    const bool fails = static_cast<int>(script_.ran.size()) - 1 == script_.fail_at;
    return fails ? SystemFailed("the cable is out") : OkStatus();
  }
  Script& script_;
};

class KernelMarkedDevice final : public device::Device, public device::NativeDevice {
 public:
  std::string_view name() const override { return "marking"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t) override {
    return Unsupported("none");
  }
  std::unique_ptr<device::Event> NewEvent() override {
    return device::host::HostDevice().NewEvent();
  }
  std::unique_ptr<device::Stream> NewStream() override { return std::make_unique<NativeFifo>(); }
  std::unique_ptr<device::Stream> NewInlineStream() override { return nullptr; }
  Status EnterThread() override { return OkStatus(); }
  Result<device::WordWriter> ShareMemory(std::span<std::byte>) override {
    return device::WordWriter::kKernel;
  }
};

class ReplayTest : public testing::Test {
 protected:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static Deadline Soon() { return Deadline::AfterSeconds(20); }
  journal::Journal Events() const {
    return journal::JournalReader(std::as_bytes(std::span(memory_)), kReplayCapacity)
        .Newest(kReplayCapacity);
  }
  std::string Kinds() const {
    std::string kinds;
    for (const journal::JournalEvent& event : Events().events) {
      kinds += event.kind == journal::EventKind::kEnqueue ? 'q'
               : event.kind == journal::EventKind::kStart ? 's'
               : event.kind == journal::EventKind::kEnd   ? 'e'
               : event.kind == journal::EventKind::kError ? 'x'
                                                          : '?';
    }
    return kinds;
  }
  std::vector<CollectiveCall> Calls(std::vector<std::int64_t> counts) {
    std::vector<CollectiveCall> calls;
    for (const std::int64_t count : counts) {
      collective::Operation operation;
      operation.count = count;
      calls.push_back({operation, {buffer_, buffer_}});
    }
    return calls;
  }

  std::vector<Line> memory_ =
      std::vector<Line>(journal::JournalBytes(kReplayCapacity) / sizeof(Line) + 1);
  journal::JournalWriter journal_ =
      journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory_)), kReplayCapacity);
  Script script_;
  RecordedCommunicator recorded_{std::make_unique<ReplayProbe>(script_), journal_, 7};
  NativeFifo native_;
  std::unique_ptr<device::Stream> inline_ = device::host::HostDevice().NewInlineStream();
  float buffer_[64] = {};
};

TEST_F(ReplayTest, CapturedOnceAndReplayedAsOftenAsAsked) {
  for (device::Stream* const stream : {static_cast<device::Stream*>(&native_), inline_.get()}) {
    script_.enqueued = 0;
    script_.ran.clear();
    auto captured = recorded_.Capture(Calls({5, 9}), *stream);
    ASSERT_TRUE(captured.ok()) << captured.status().message();
    ASSERT_TRUE(stream->Synchronize(Soon()).ok());
    EXPECT_TRUE(script_.ran.empty());
    for (int replay = 0; replay < 3; ++replay) {
      ASSERT_TRUE(recorded_.Replay(*captured, *stream, Soon()).ok());
    }
    EXPECT_EQ(script_.enqueued, 2);  // by the capture, and by no replay
    EXPECT_EQ(script_.ran, (std::vector<std::int64_t>{5, 9, 5, 9, 5, 9}));
  }
  EXPECT_EQ(native_.captures, 1);
  EXPECT_FALSE(native_.disturbed);
  const std::string each = "qseqseqqsseeqqsseeqqssee";  // two calls captured, then thrice replayed
  EXPECT_EQ(Kinds(), each + each);
}

TEST_F(ReplayTest, TheJournalSaysWhatWasReplayed) {
  auto captured = recorded_.Capture(Calls({5, 9}), native_);
  ASSERT_TRUE(recorded_.Enqueue(Calls({7})[0].operation, {buffer_, buffer_}, *inline_).ok());
  ASSERT_TRUE(recorded_.Replay(*captured, native_, Soon()).ok());
  ASSERT_TRUE(recorded_.Replay(*captured, native_, Soon()).ok());
  const std::vector<journal::JournalEvent> events = Events().events;
  ASSERT_EQ(Kinds(), "qseqseqseqqsseeqqssee");
  const journal::JournalEvent& last = events.back();
  EXPECT_EQ(last.sequence, 6u);
  EXPECT_EQ(last.nth, 7u);
  EXPECT_EQ(last.count, 9);
  EXPECT_EQ(last.communicator, 7);
  EXPECT_EQ(journal::UnpackAnnotation(last.value),
            (journal::Annotation{journal::Purpose::kReplay, 1, 1}));
  EXPECT_EQ(journal::UnpackAnnotation(events[0].value),
            (journal::Annotation{journal::Purpose::kCapture, 0, -1}));
  EXPECT_EQ(journal::UnpackAnnotation(events[5].value),
            (journal::Annotation{journal::Purpose::kCapture, 1, -1}));
  EXPECT_EQ(journal::UnpackAnnotation(events[6].value), journal::Annotation());
  const Interval interval = recorded_.last_interval();
  EXPECT_LE(events[18].ticks, interval.entry);
  EXPECT_LE(interval.entry, interval.exit);
  EXPECT_EQ(last.ticks, interval.exit);
}

// What a hang looks like from outside: the oldest call of the graph is open, and the device is in
// it.
TEST_F(ReplayTest, AReplayThatDoesNotEndIsOpen) {
  struct alignas(4096) Page {
    std::byte bytes[journal::kDeviceMarksBytes] = {};
  };
  const auto page = std::make_unique<Page>();
  KernelMarkedDevice device;
  ASSERT_TRUE(recorded_.MarkOn(page->bytes, device).value());
  const auto mark = [&] { return journal::ReadDeviceMarks(page->bytes).marks.at(0); };
  auto captured = recorded_.Capture(Calls({5, 9, 3}), native_);
  ASSERT_TRUE(recorded_.Replay(*captured, native_, Soon()).ok());
  EXPECT_EQ(mark().started, 6u);
  EXPECT_EQ(mark().ended, 6u);
  EXPECT_FALSE(journal::OpenOperation(Events()).has_value());
  script_.holds = true;
  EXPECT_EQ(recorded_.Replay(*captured, native_, Deadline::AfterSeconds(0.05)).code(),
            StatusCode::kDeadlineExceeded);
  const auto open = journal::OpenOperation(Events());
  ASSERT_TRUE(open.has_value());
  EXPECT_EQ(open->sequence, 6u);
  EXPECT_EQ(journal::UnpackAnnotation(open->value).purpose, journal::Purpose::kReplay);
  const Deadline limit = Soon();
  while (mark().started < 7 && !limit.Passed()) std::this_thread::yield();
  EXPECT_EQ(mark().started, 7u);
  EXPECT_EQ(mark().ended, 6u);
  // The device tells which call of the graph it is in, where the journal cannot.
  script_.passes = 1;
  while (mark().started < 8 && !limit.Passed()) std::this_thread::yield();
  EXPECT_EQ(mark().started, 8u);
  EXPECT_EQ(mark().ended, 7u);
  script_.holds = false;
  ASSERT_TRUE(native_.Synchronize(Soon()).ok());
  EXPECT_EQ(mark().ended, 9u);
}

// A library that hangs while it is captured, or a graph that is never done being made.
TEST_F(ReplayTest, ACaptureThatDoesNotEndIsOpen) {
  const auto graph = [&]() -> Result<std::unique_ptr<device::StreamGraph>> {
    WorkGraph kept;
    KeepingStream keeping(kept, 0);
    for (const CollectiveCall& call : Calls({5, 9})) {
      LOCKSTEP_RETURN_IF_ERROR(recorded_.Enqueue(call.operation, call.buffers, keeping));
      const auto open = journal::OpenOperation(Events());
      EXPECT_TRUE(open.has_value());
      if (!open) break;
      EXPECT_EQ(open->count, call.operation.count);
      EXPECT_EQ(journal::Describe(journal::UnpackAnnotation(open->value)),
                "graph capture: call " + std::to_string(open->sequence));
    }
    return SystemFailed("no graph");
  };
  EXPECT_EQ(recorded_.CaptureDuring(graph).status().message(), "no graph");
  EXPECT_FALSE(journal::OpenOperation(Events()).has_value());
  EXPECT_EQ(Kinds(), "qseqsx");
}

// What a step sends is told by its bucket.
TEST_F(ReplayTest, BucketsKeepTheirNumbers) {
  auto captured = recorded_.CaptureDuring([&]() -> Result<std::unique_ptr<device::StreamGraph>> {
    auto kept = std::make_unique<WorkGraph>();
    KeepingStream keeping(*kept, 0);
    const auto calls = Calls({5, 9});
    recorded_.AnnotateNext({journal::Purpose::kBufferBroadcast, 0, -1});
    LOCKSTEP_RETURN_IF_ERROR(recorded_.Enqueue(calls[0].operation, calls[0].buffers, keeping));
    recorded_.AnnotateNext({journal::Purpose::kBucket, 4, -1});
    LOCKSTEP_RETURN_IF_ERROR(recorded_.Enqueue(calls[1].operation, calls[1].buffers, keeping));
    return std::unique_ptr<device::StreamGraph>(std::move(kept));
  });
  ASSERT_TRUE(captured.ok()) << captured.status().message();
  ASSERT_TRUE(recorded_.Replay(*captured, *inline_, Soon()).ok());
  const std::vector<journal::JournalEvent> events = Events().events;
  ASSERT_EQ(Kinds(), "qseqseqqssee");
  EXPECT_EQ(journal::Describe(journal::UnpackAnnotation(events[10].value)),
            "graph replay: call 0 of iteration 0");
  EXPECT_EQ(journal::Describe(journal::UnpackAnnotation(events[11].value)),
            "graph replay: bucket 4 of iteration 0");
}

TEST_F(ReplayTest, AnErrorInAReplayIsOneOfAllItsCalls) {
  auto captured = recorded_.Capture(Calls({5, 9}), *inline_);
  script_.fail_at = 2;
  ASSERT_TRUE(recorded_.Replay(*captured, *inline_, Soon()).ok());
  EXPECT_EQ(recorded_.Replay(*captured, *inline_, Soon()).message(), "the cable is out");
  EXPECT_EQ(Kinds(), "qseqseqqsseeqqssxx");
  EXPECT_EQ(recorded_.Replay(*captured, *inline_, Soon()).message(), "the cable is out");
  EXPECT_EQ(script_.ran.size(), 3u);  // a failed stream runs nothing
  EXPECT_EQ(Kinds(), "qseqseqqsseeqqssxxqqssxx");
}

TEST_F(ReplayTest, AnErrorDuringTheCaptureLeavesNothingBehind) {
  std::string kinds;
  for (device::Stream* const stream : {static_cast<device::Stream*>(&native_), inline_.get()}) {
    script_.enqueued = 0;
    script_.refuse_at = 1;
    EXPECT_EQ(recorded_.Capture(Calls({5, 9}), *stream).status().message(), "no such call");
    ASSERT_TRUE(stream->Synchronize(Soon()).ok());
    EXPECT_TRUE(script_.ran.empty());
    EXPECT_EQ(Kinds(), kinds += "qseqsx");
  }
  // The stream is as before, and what is captured then is all of it.
  script_.refuse_at = -1;
  auto captured = recorded_.Capture(Calls({4}), native_);
  ASSERT_TRUE(captured.ok());
  ASSERT_TRUE(recorded_.Replay(*captured, native_, Soon()).ok());
  EXPECT_EQ(script_.ran, (std::vector<std::int64_t>{4}));
}

TEST_F(ReplayTest, WorkOfTheHostIsRefusedWhereADeviceDoesIt) {
  script_.on_host = true;
  const auto captured = recorded_.Capture(Calls({5}), native_);
  EXPECT_EQ(captured.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(captured.status().message(), "a graph cannot hold work of the host");
  EXPECT_FALSE(native_.disturbed);
}

TEST_F(ReplayTest, OtherShapesAreAnotherCapture) {
  auto small = recorded_.Capture(Calls({5}), native_);
  auto large = recorded_.Capture(Calls({50, 51}), native_);
  ASSERT_TRUE(recorded_.Replay(*large, native_, Soon()).ok());
  ASSERT_TRUE(recorded_.Replay(*small, native_, Soon()).ok());
  ASSERT_TRUE(recorded_.Replay(*large, native_, Soon()).ok());
  EXPECT_EQ(script_.ran, (std::vector<std::int64_t>{50, 51, 5, 50, 51}));
  EXPECT_EQ(native_.captures, 2);
  EXPECT_EQ(journal::UnpackAnnotation(Events().events.back().value),
            (journal::Annotation{journal::Purpose::kReplay, 1, 1}));
}

}  // namespace
}  // namespace lockstep::comm
