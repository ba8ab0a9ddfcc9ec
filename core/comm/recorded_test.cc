// What the journal says of operations that run, fail, are refused or never end. A probe in the
// library's place sees what happens around each call. The global operator new is counted, because
// the measured path must not allocate.
#include "core/comm/recorded.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/local_meeting.h"
#include "core/comm/null/null_communicator.h"
#include "core/comm/testing/native_fifo.h"
#include "core/device/host/host_device.h"
#include "core/device/native_stream.h"
#include "core/journal/device_marks.h"
#include "core/journal/journal.h"
#include "gtest/gtest.h"

namespace {
std::atomic<long> allocations{0};
}
// Counted, because the path between the stamps must not allocate.
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep::comm {
namespace {

constexpr std::size_t kCapacity = 1024;

// Lets a test see what happens around each call, and fails on demand.
class ProbeCommunicator final : public Communicator {
 public:
  struct Script {
    std::vector<Ticks> called_at;
    std::function<void()> during;  // a call
    int fail_at = -1;  // the how manieth call fails
    Status refuse;     // instead of enqueuing
    Status await;
    Status refuse_split;
    device::Event* launch_waits_for = nullptr;  // on streams with handles
  };
  explicit ProbeCommunicator(Script& script) : script_(script) {}

  const Capabilities& capabilities() const override { return null::NullCapabilities(); }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status Enqueue(const collective::Operation&, const collective::Buffers&,
                 device::Stream& stream) override {
    LOCKSTEP_RETURN_IF_ERROR(script_.refuse);
    if (auto* const native = dynamic_cast<device::NativeStream*>(&stream)) {
      return native->LaunchOn([this](void* handle) {
        auto& fifo = *static_cast<device::Stream*>(handle);
        if (script_.launch_waits_for != nullptr) fifo.WaitFor(*script_.launch_waits_for);
        fifo.Enqueue([this] { return Run(); });
        return OkStatus();
      });
    }
    stream.Enqueue([this] { return Run(); });
    return stream.inline_execution() ? stream.status() : OkStatus();
  }
  Status Await(device::Stream& stream, Deadline deadline) override {
    LOCKSTEP_RETURN_IF_ERROR(stream.Synchronize(deadline));
    return script_.await;
  }
  void Abort() override {}
  Result<std::unique_ptr<Communicator>> Split(int color, int, Deadline) override {
    LOCKSTEP_RETURN_IF_ERROR(script_.refuse_split);
    if (color < 0) return std::unique_ptr<Communicator>();
    return std::unique_ptr<Communicator>(std::make_unique<ProbeCommunicator>(script_));
  }

 private:
  Status Run() {
    script_.called_at.push_back(NowTicks());
    if (script_.during) script_.during();
    const bool fails = static_cast<int>(script_.called_at.size()) - 1 == script_.fail_at;
    return fails ? SystemFailed("the cable is out") : OkStatus();
  }

  Script& script_;
};

// A device whose streams write words of the host's memory.
class MarkingDevice final : public device::Device, public device::NativeDevice {
 public:
  std::string_view name() const override { return "marking"; }
  Result<std::unique_ptr<device::Buffer>> Allocate(std::int64_t) override {
    return Unsupported("none");
  }
  std::unique_ptr<device::Event> NewEvent() override {
    return device::host::HostDevice().NewEvent();
  }
  std::unique_ptr<device::Stream> NewStream() override { return std::make_unique<NativeFifo>(); }
  std::unique_ptr<device::Stream> NewInlineStream() override {
    return device::host::HostDevice().NewInlineStream();
  }
  Status EnterThread() override { return OkStatus(); }
  Result<device::WordWriter> ShareMemory(std::span<std::byte>) override {
    if (refuses) return Unsupported("other addresses");
    return device::WordWriter::kKernel;
  }
  bool refuses = false;
};

class RecordedTest : public testing::Test {
 protected:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  std::vector<journal::JournalEvent> Events() const {
    return journal::JournalReader(std::as_bytes(std::span(memory_)), kCapacity)
        .Newest(kCapacity)
        .events;
  }
  std::string Kinds() const {
    std::string kinds;
    for (const journal::JournalEvent& event : Events()) {
      const char letter = event.kind == journal::EventKind::kEnqueue ? 'q'
                          : event.kind == journal::EventKind::kStart ? 's'
                          : event.kind == journal::EventKind::kEnd   ? 'e'
                          : event.kind == journal::EventKind::kError ? 'x'
                                                                     : '?';
      kinds += letter;
    }
    return kinds;
  }
  static collective::Operation AllReduce(
      collective::Blocking blocking = collective::Blocking::kBlocking) {
    collective::Operation operation;
    operation.count = 25;
    operation.blocking = blocking;
    return operation;
  }
  Status Enqueue(const collective::Operation& operation, device::Stream& stream) {
    return recorded_.Enqueue(operation, {buffer_, buffer_}, stream);
  }
  static Deadline Soon() { return Deadline::AfterSeconds(20); }

  std::vector<Line> memory_ =
      std::vector<Line>(journal::JournalBytes(kCapacity) / sizeof(Line) + 1);
  journal::JournalWriter journal_ =
      journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory_)), kCapacity);
  ProbeCommunicator::Script script_;
  RecordedCommunicator recorded_{std::make_unique<ProbeCommunicator>(script_), journal_, 7};
  std::unique_ptr<device::Stream> inline_ = device::host::HostDevice().NewInlineStream();
  std::unique_ptr<device::Stream> fifo_ = device::host::HostDevice().NewStream();
  float buffer_[64] = {};
};

TEST_F(RecordedTest, AnEventSaysWhatWasCalled) {
  collective::Operation operation;
  operation.collective = collective::Collective::kBroadcast;
  operation.type = collective::DataType::kBf16;
  operation.count = 12;
  operation.root = 1;
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  ASSERT_TRUE(Enqueue(operation, *inline_).ok());
  EXPECT_EQ(Kinds(), "qseqseqse");
  const journal::JournalEvent last = Events().back();
  EXPECT_EQ(last.collective, collective::Collective::kBroadcast);
  EXPECT_EQ(last.type, collective::DataType::kBf16);
  EXPECT_EQ(last.count, 12);
  EXPECT_EQ(last.root, 1);
  EXPECT_EQ(last.communicator, 7);
  EXPECT_EQ(last.sequence, 2u);
  EXPECT_EQ(last.nth, 1u);
  EXPECT_EQ(Events()[3].nth, 2u);
  EXPECT_EQ(recorded_.next_sequence(), 3u);
}

TEST_F(RecordedTest, TheIntervalIsInsideTheBookkeeping) {
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  const auto events = Events();
  const Interval interval = recorded_.last_interval();
  EXPECT_LE(events[0].ticks, events[1].ticks);
  EXPECT_LE(events[1].ticks, interval.entry);
  EXPECT_LE(interval.entry, script_.called_at.at(0));
  EXPECT_LE(script_.called_at.at(0), interval.exit);
  EXPECT_EQ(events[2].ticks, interval.exit);
}

TEST_F(RecordedTest, AnInlineOperationAllocatesNothing) {
  script_.called_at.reserve(1000);
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  const long before = allocations;
  for (int i = 0; i < 100; ++i) static_cast<void>(Enqueue(AllReduce(), *inline_));
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(script_.called_at.size(), 101u);
}

TEST_F(RecordedTest, AnErrorTakesThePlaceOfTheEnd) {
  script_.fail_at = 1;
  for (device::Stream* stream : {inline_.get(), fifo_.get()}) {
    static_cast<void>(Enqueue(AllReduce(), *stream));
    static_cast<void>(Enqueue(AllReduce(), *stream));
    EXPECT_EQ(recorded_.Await(*stream, Soon()).message(), "the cable is out");
    script_.called_at.clear();
  }
  const std::string kinds = Kinds();
  EXPECT_EQ(kinds.substr(0, 6), "qseqsx");
  EXPECT_EQ(std::count(kinds.begin() + 6, kinds.end(), 'x'), 1);
  // What comes after on the failed stream never starts, and says so.
  EXPECT_FALSE(Enqueue(AllReduce(), *inline_).ok());
  EXPECT_EQ(Kinds().substr(kinds.size()), "qx");
}

// What the journal said while the barrier ran, and while the operation did.
TEST_F(RecordedTest, BehindABarrierTheJournalFollowsBoth) {
  for (device::Stream* stream : {inline_.get(), fifo_.get()}) {
    std::vector<std::string> during;
    const std::size_t before = Events().size();
    script_.during = [&] { during.push_back(Kinds().substr(before)); };
    ASSERT_TRUE(recorded_.EnqueueAfterBarrier(AllReduce(), {buffer_, buffer_}, *stream).ok());
    ASSERT_TRUE(recorded_.Await(*stream, Soon()).ok());
    script_.during = nullptr;
    ASSERT_EQ(during.size(), 2u);
    if (stream == inline_.get()) {
      EXPECT_EQ(during, (std::vector<std::string>{"qs", "qseqs"}));
      EXPECT_EQ(Kinds(), "qseqse");
    }
    const auto events = Events();
    ASSERT_EQ(events.size(), before + 6);
    EXPECT_EQ(events[before].collective, collective::Collective::kBarrier);
    EXPECT_EQ(events.back().collective, collective::Collective::kAllReduce);
    EXPECT_EQ(events.back().sequence, events[before].sequence + 1);
  }
}

TEST_F(RecordedTest, BehindABarrierTheIntervalIsThatOfTheOperation) {
  ASSERT_TRUE(recorded_.EnqueueAfterBarrier(AllReduce(), {buffer_, buffer_}, *inline_).ok());
  const Interval interval = recorded_.last_interval();
  EXPECT_LE(script_.called_at.at(0), Events()[2].ticks);  // the end of the barrier
  EXPECT_LE(Events()[4].ticks, interval.entry);
  EXPECT_LE(interval.entry, script_.called_at.at(1));
  EXPECT_EQ(Events()[5].ticks, interval.exit);
}

TEST_F(RecordedTest, BehindABarrierThatFailsNothingIsCalled) {
  script_.fail_at = 0;
  EXPECT_EQ(recorded_.EnqueueAfterBarrier(AllReduce(), {buffer_, buffer_}, *inline_).message(),
            "the cable is out");
  EXPECT_EQ(script_.called_at.size(), 1u);
  EXPECT_EQ(Kinds(), "qsx");
}

TEST_F(RecordedTest, ARefusedOperationIsNotLeftOpen) {
  script_.refuse = Unsupported("no");
  EXPECT_FALSE(Enqueue(AllReduce(), *inline_).ok());
  EXPECT_FALSE(Enqueue(AllReduce(), *fifo_).ok());
  EXPECT_EQ(Kinds(), "qsxqx");
}

TEST_F(RecordedTest, NonblockingOperationsEndInAwait) {
  for (device::Stream* stream : {inline_.get(), fifo_.get()}) {
    const std::size_t before = Events().size();
    const Ticks begin = NowTicks();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(Enqueue(AllReduce(collective::Blocking::kNonblocking), *stream).ok());
    }
    ASSERT_TRUE(stream->Synchronize(Soon()).ok());
    EXPECT_EQ(Kinds().substr(before).find('e'), std::string::npos);
    ASSERT_TRUE(recorded_.Await(*stream, Soon()).ok());
    EXPECT_EQ(Kinds().substr(before + 6), "eee");
    const Interval interval = recorded_.last_interval();
    EXPECT_GE(interval.entry, begin);
    EXPECT_LE(interval.entry, script_.called_at.at(script_.called_at.size() - 3));
    EXPECT_EQ(Events().back().ticks, interval.exit);
    EXPECT_EQ(Events().back().sequence, recorded_.next_sequence() - 1);
  }
}

TEST_F(RecordedTest, ADeadlineLeavesOperationsOpen) {
  script_.await = DeadlineExceeded("silence");
  ASSERT_TRUE(Enqueue(AllReduce(collective::Blocking::kNonblocking), *inline_).ok());
  EXPECT_FALSE(recorded_.Await(*inline_, Soon()).ok());
  EXPECT_EQ(Kinds(), "qs");
  script_.await = SystemFailed("broken");
  EXPECT_FALSE(recorded_.Await(*inline_, Soon()).ok());
  EXPECT_EQ(Kinds(), "qsx");
}

TEST_F(RecordedTest, AFifoStreamRecordsInOrder) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Enqueue(AllReduce(), *fifo_).ok());
  ASSERT_TRUE(recorded_.Await(*fifo_, Soon()).ok());
  std::uint64_t next_start = 0;
  std::uint64_t next_end = 0;
  std::uint64_t enqueued = 0;
  for (const journal::JournalEvent& event : Events()) {
    if (event.kind == journal::EventKind::kEnqueue) {
      EXPECT_EQ(event.sequence, enqueued++);
    }
    if (event.kind == journal::EventKind::kStart) {
      EXPECT_EQ(event.sequence, next_start++);
      EXPECT_LT(event.sequence, enqueued);
    }
    if (event.kind == journal::EventKind::kEnd) {
      EXPECT_EQ(event.sequence, next_end++);
      EXPECT_EQ(next_end, next_start);
    }
  }
  EXPECT_EQ(next_end, 100u);
  EXPECT_LE(recorded_.last_interval().entry, script_.called_at.front());
  EXPECT_GE(recorded_.last_interval().exit, script_.called_at.back());
}

TEST_F(RecordedTest, AnAnnotationIsThatOfTheNextOperation) {
  const journal::Annotation bucket = {journal::Purpose::kBucket, 3, 12};
  recorded_.AnnotateNext(bucket);
  ASSERT_TRUE(Enqueue(AllReduce(), *fifo_).ok());
  recorded_.EnterPhase(journal::Phase::kBackward);
  ASSERT_TRUE(Enqueue(AllReduce(), *fifo_).ok());
  ASSERT_TRUE(recorded_.Await(*fifo_, Soon()).ok());
  int annotated = 0;
  for (const journal::JournalEvent& event : Events()) {
    if (event.kind == journal::EventKind::kPhase) {
      EXPECT_EQ(event.phase, journal::Phase::kBackward);
      continue;
    }
    const bool first = event.sequence == 0;
    EXPECT_EQ(journal::UnpackAnnotation(event.value), first ? bucket : journal::Annotation{});
    annotated += first ? 1 : 0;
  }
  EXPECT_EQ(annotated, 3);
}

TEST_F(RecordedTest, ChildrenHaveTheirOwnIdsAndSequences) {
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  auto none = recorded_.Split(-1, 0, Soon());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
  auto child = recorded_.Split(0, 0, Soon());
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE((*child)->Enqueue(AllReduce(), {buffer_, buffer_}, *inline_).ok());
  EXPECT_EQ(Events().back().communicator, 9);
  EXPECT_EQ(Events().back().sequence, 0u);
  auto grandchild = (*child)->Split(0, 0, Soon());
  ASSERT_TRUE(grandchild.ok());
  ASSERT_TRUE((*grandchild)->Enqueue(AllReduce(), {buffer_, buffer_}, *inline_).ok());
  EXPECT_EQ(Events().back().communicator, 10);
}

TEST_F(RecordedTest, TheMakingOfACommunicatorIsJournaled) {
  ASSERT_TRUE(recorded_.Split(-1, 0, Soon()).ok());
  ASSERT_TRUE(recorded_.Split(2, 0, Soon()).ok());
  script_.refuse_split = SystemFailed("no");
  EXPECT_FALSE(recorded_.Split(0, 0, Soon()).ok());
  const std::vector<journal::JournalEvent> events = Events();
  ASSERT_EQ(events.size(), 6u);
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].kind,
              i % 2 == 0 ? journal::EventKind::kSplit : journal::EventKind::kSplitEnd);
    EXPECT_EQ(events[i].communicator, 7);
    EXPECT_EQ(events[i].sequence, i / 2);
    EXPECT_EQ(events[i].count, static_cast<std::int64_t>(8 + i / 2));
    EXPECT_EQ(events[i].value, i == 5 ? 1 : 0);
  }
  EXPECT_EQ(events[0].root, -1);
  EXPECT_EQ(events[2].root, 2);
}

TEST_F(RecordedTest, OnStreamsWithHandlesTheJournalFollowsTheStream) {
  NativeFifo stream;
  ASSERT_TRUE(Enqueue(AllReduce(), stream).ok());
  ASSERT_TRUE(recorded_.Await(stream, Soon()).ok());
  EXPECT_EQ(Kinds(), "qse");
  ASSERT_EQ(script_.called_at.size(), 1u);
  EXPECT_GE(script_.called_at[0], recorded_.last_interval().entry);
  EXPECT_LE(script_.called_at[0], recorded_.last_interval().exit);
  script_.refuse = SystemFailed("no");
  EXPECT_FALSE(Enqueue(AllReduce(), stream).ok());
  ASSERT_TRUE(stream.Synchronize(Soon()).ok());
  EXPECT_EQ(Kinds(), "qseqsx");
  script_.refuse = OkStatus();
  // What ends after an Await told an error did not end well.
  script_.await = SystemFailed("the peer is gone");
  EXPECT_FALSE(recorded_.Await(stream, Soon()).ok());
  ASSERT_TRUE(Enqueue(AllReduce(), stream).ok());
  ASSERT_TRUE(stream.Synchronize(Soon()).ok());
  EXPECT_EQ(Kinds(), "qseqsxqsx");
}

TEST_F(RecordedTest, TheDeviceMarksWhatItBeginsAndEnds) {
  struct alignas(4096) Page {
    std::byte bytes[journal::kDeviceMarksBytes] = {};
  };
  const auto page = std::make_unique<Page>();
  MarkingDevice device;
  device::host::HostDevice host;
  EXPECT_FALSE(recorded_.MarkOn(page->bytes, host).value());
  device.refuses = true;
  EXPECT_FALSE(recorded_.MarkOn(page->bytes, device).ok());
  device.refuses = false;
  EXPECT_TRUE(recorded_.MarkOn(page->bytes, device).value());
  const auto stream = device.NewStream();
  const auto event = host.NewEvent();
  script_.launch_waits_for = event.get();
  ASSERT_TRUE(Enqueue(AllReduce(), *stream).ok());
  const auto marks = [&] { return journal::ReadDeviceMarks(page->bytes).marks; };
  const Deadline deadline = Soon();
  while (marks().empty() && !deadline.Passed()) std::this_thread::yield();
  ASSERT_EQ(marks().size(), 1u);
  EXPECT_EQ(marks()[0].communicator, 7);
  EXPECT_EQ(marks()[0].started, 1u);
  EXPECT_EQ(marks()[0].ended, 0u);
  inline_->Record(*event);
  ASSERT_TRUE(recorded_.Await(*stream, Soon()).ok());
  EXPECT_EQ(marks()[0].ended, 1u);
  EXPECT_EQ(journal::ReadDeviceMarks(page->bytes).method, journal::MarkMethod::kKernel);
  // Children have words of their own; on streams without handles nothing is marked.
  script_.launch_waits_for = nullptr;
  auto child = recorded_.Split(0, 0, Soon());
  ASSERT_TRUE((*child)->Enqueue(AllReduce(), {buffer_, buffer_}, *stream).ok());
  ASSERT_TRUE(Enqueue(AllReduce(), *inline_).ok());
  ASSERT_TRUE((*child)->Await(*stream, Soon()).ok());
  ASSERT_EQ(marks().size(), 2u);
  EXPECT_EQ(marks()[0].started, 1u);
  EXPECT_EQ(marks()[1].communicator, 8);
  EXPECT_EQ(marks()[1].ended, 1u);
}

}  // namespace
}  // namespace lockstep::comm
