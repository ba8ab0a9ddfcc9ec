// What the journal says of operations that run, fail, are refused or never end. The global operator
// new is counted, because the measured path must not allocate.
#include "core/comm/recorded.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/comm/local_meeting.h"
#include "core/comm/testing/native_fifo.h"
#include "core/comm/testing/recorded_fixture.h"
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

TEST_F(RecordedTest, WhatTheProgramWritesBesideAFifoStreamIsKept) {
  constexpr std::uint64_t kOperations = 50'000;
  constexpr std::uint64_t kFaultsEach = 10;
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    ASSERT_TRUE(Enqueue(AllReduce(), *fifo_).ok());
    for (std::uint64_t fault = 0; fault < kFaultsEach; ++fault) journal_.Fault(fault);
  }
  ASSERT_TRUE(recorded_.Await(*fifo_, Soon()).ok());
  EXPECT_EQ(Events().back().index, (3 + kFaultsEach) * kOperations);
}

TEST_F(RecordedTest, WhatEndsBehindTheProgramsEndIsNotTold) {
  std::promise<void> exited;
  script_.during = [&] { exited.get_future().wait(); };
  ASSERT_TRUE(Enqueue(AllReduce(), *fifo_).ok());
  journal_.Exit(7);
  exited.set_value();
  ASSERT_TRUE(recorded_.Await(*fifo_, Soon()).ok());
  EXPECT_EQ(Events().back().kind, journal::EventKind::kExit);
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
