// Rings that wrap, are damaged or are written while they are read. Every event's fields follow from
// its index, so that a torn one shows.
#include "core/journal/journal.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/journal/testing/self_describing_event.h"
#include "gtest/gtest.h"

namespace lockstep::journal {
namespace {

// A journal in this process's memory.
class Ring {
 public:
  explicit Ring(std::size_t capacity)
      : lines_(JournalBytes(capacity) / sizeof(JournalEvent)),
        writer_(JournalWriter::Create(std::as_writable_bytes(std::span(lines_)), capacity)),
        reader_(std::as_bytes(std::span(lines_)), capacity) {
    std::memset(static_cast<void*>(lines_.data()), 0, JournalBytes(capacity));
  }
  JournalWriter& writer() { return writer_; }
  const JournalReader& reader() const { return reader_; }
  std::byte* slot(std::size_t index) { return reinterpret_cast<std::byte*>(&lines_[1 + index]); }

 private:
  std::vector<JournalEvent> lines_;
  JournalWriter writer_;
  JournalReader reader_;
};

JournalEvent Of(EventKind kind, std::uint64_t sequence, std::uint16_t communicator = 0) {
  JournalEvent event;
  event.kind = kind;
  event.sequence = sequence;
  event.communicator = communicator;
  event.nth = static_cast<std::uint32_t>(sequence + 1);
  return event;
}

TEST(Journal, StartsEmpty) {
  Ring ring(4);
  EXPECT_FALSE(ring.reader().Last());
  EXPECT_TRUE(ring.reader().Newest(4).events.empty());
  EXPECT_EQ(ring.reader().Newest(4).missed, 0u);
}

TEST(Journal, KeepsAllThatFits) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 4; ++i) ring.writer().Append(SelfDescribingEvent(i));
  const Journal journal = ring.reader().Newest(100);
  ASSERT_EQ(journal.events.size(), 4u);
  EXPECT_EQ(journal.missed, 0u);
  for (std::uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(journal.events[i - 1].index, i);
    EXPECT_TRUE(IsWhole(journal.events[i - 1]));
  }
}

TEST(Journal, WrapsAroundAndCountsWhatWasOverwritten) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 11; ++i) ring.writer().Append(SelfDescribingEvent(i));
  const Journal all = ring.reader().Newest(100);
  ASSERT_EQ(all.events.size(), 4u);
  EXPECT_EQ(all.events.front().index, 8u);
  EXPECT_EQ(all.events.back().index, 11u);
  EXPECT_EQ(all.missed, 7u);
  const Journal two = ring.reader().Newest(2);
  ASSERT_EQ(two.events.size(), 2u);
  EXPECT_EQ(two.events.front().index, 10u);
  EXPECT_EQ(two.missed, 9u);  // 8 and 9 were not asked for
  EXPECT_EQ(ring.reader().Last()->index, 11u);
}

TEST(Journal, StampsCasePhaseAndTime) {
  Ring ring(16);
  const Ticks before = NowTicks();
  ring.writer().BeginCase(7);
  ring.writer().EnterPhase(Phase::kMeasure);
  const Ticks stamp = ring.writer().Append(Of(EventKind::kStart, 3));
  JournalEvent with_time = Of(EventKind::kEnd, 3);
  with_time.ticks = 42;
  EXPECT_EQ(ring.writer().Append(with_time), 42u);
  ring.writer().Idle();
  ring.writer().Exit(9);
  const auto events = ring.reader().Newest(16).events;
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].kind, EventKind::kCase);
  EXPECT_EQ(events[1].kind, EventKind::kPhase);
  EXPECT_EQ(events[2].ticks, stamp);
  EXPECT_GE(stamp, before);
  EXPECT_LE(stamp, NowTicks());
  EXPECT_EQ(events[3].ticks, 42u);
  EXPECT_EQ(events[4].kind, EventKind::kIdle);
  EXPECT_EQ(events[5].kind, EventKind::kExit);
  EXPECT_EQ(events[5].value, 9);
  for (const JournalEvent& event : events) EXPECT_EQ(event.case_index, 7u);
  EXPECT_EQ(events[0].phase, Phase::kStart);
  for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(events[i].phase, Phase::kMeasure);
}

TEST(Journal, NothingIsWrittenBehindTheEnd) {
  Ring ring(4);
  ring.writer().Exit(9);
  JournalEvent late = Of(EventKind::kEnd, 0);
  late.ticks = 42;
  EXPECT_EQ(ring.writer().Append(late), 42u);
  ring.writer().Exit(0);
  const auto events = ring.reader().Newest(4).events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].value, 9);
}

// Two who take the same index, as they do without Share, write one event less.
TEST(Journal, ThreadsThatShareItLoseNoEvent) {
  constexpr std::uint64_t kEach = 500'000;
  Ring ring(1024);
  ring.writer().Share();
  const auto write = [&](std::uint16_t thread) {
    for (std::uint64_t i = 1; i <= kEach; ++i) {
      ring.writer().Append(Of(EventKind::kStart, i, thread));
    }
  };
  std::thread beside(write, 1);
  write(0);
  beside.join();
  const auto events = ring.reader().Newest(1024).events;
  ASSERT_EQ(events.size(), 1024u);
  EXPECT_EQ(events.back().index, 2 * kEach);
  std::uint64_t newest[] = {0, 0};
  for (const JournalEvent& event : events) {
    std::uint64_t& before = newest[event.communicator];
    EXPECT_TRUE(before == 0 || event.sequence == before + 1) << event.index;
    EXPECT_EQ(event.nth, event.sequence + 1);
    before = event.sequence;
  }
}

TEST(Journal, SlotUnderWritingIsLeftOut) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 6; ++i) ring.writer().Append(SelfDescribingEvent(i));
  std::memset(ring.slot(7 % 4), 0, sizeof(std::uint64_t));  // as if killed while writing event 7
  const Journal journal = ring.reader().Newest(4);
  ASSERT_EQ(journal.events.size(), 3u);  // event 3 lay there
  EXPECT_EQ(journal.events.front().index, 4u);
  EXPECT_EQ(journal.missed, 3u);
}

TEST(Journal, WhatIsPreparedIsSeenWhenItIsPublished) {
  Ring ring(8);
  ring.writer().Append(SelfDescribingEvent(1));
  const JournalEvent next[] = {SelfDescribingEvent(2), SelfDescribingEvent(3)};
  ring.writer().Prepare(next);
  EXPECT_EQ(ring.reader().Newest(8).events.size(), 1u);
  ring.writer().Publish(42);
  ring.writer().Append(SelfDescribingEvent(4));
  const Journal journal = ring.reader().Newest(8);
  ASSERT_EQ(journal.events.size(), 4u);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(journal.events[i].index, i + 1);
  for (std::uint64_t i : {1u, 2u}) EXPECT_EQ(journal.events[i].ticks, 42u);
  EXPECT_EQ(journal.events[2].sequence, SelfDescribingEvent(3).sequence);
}

TEST(Journal, WhatIsPreparedAndNotPublishedIsWrittenOver) {
  Ring ring(8);
  const JournalEvent next[] = {Of(EventKind::kEnd, 1), Of(EventKind::kEnqueue, 2)};
  ring.writer().Prepare(next);
  ring.writer().Append(Of(EventKind::kError, 1));
  ring.writer().Publish(42);
  const Journal journal = ring.reader().Newest(8);
  ASSERT_EQ(journal.events.size(), 1u);
  EXPECT_EQ(journal.events[0].kind, EventKind::kError);
}

TEST(Journal, PreparingTakesTheOldestEventsOfAFullRing) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 4; ++i) ring.writer().Append(SelfDescribingEvent(i));
  const JournalEvent next[] = {SelfDescribingEvent(5), SelfDescribingEvent(6)};
  ring.writer().Prepare(next);
  const Journal journal = ring.reader().Newest(4);
  ASSERT_EQ(journal.events.size(), 2u);
  EXPECT_EQ(journal.events.front().index, 3u);
  EXPECT_EQ(journal.missed, 2u);
}

TEST(Journal, EventBeyondTheHeadIsFound) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 6; ++i) ring.writer().Append(SelfDescribingEvent(i));
  // As if killed after the slot of event 7 was whole and before the head said so.
  const JournalEvent seventh = SelfDescribingEvent(7);
  std::memcpy(ring.slot(7 % 4), &seventh, sizeof seventh);
  EXPECT_EQ(ring.reader().Last()->index, 7u);
  const Journal journal = ring.reader().Newest(4);
  ASSERT_EQ(journal.events.size(), 4u);
  EXPECT_EQ(journal.events.front().index, 4u);
  EXPECT_EQ(journal.events.back().index, 7u);
}

TEST(Journal, RubbishOfABrokenProcessIsNoEvent) {
  Ring ring(4);
  for (std::uint64_t i = 1; i <= 4; ++i) ring.writer().Append(SelfDescribingEvent(i));
  std::memset(ring.slot(2) + 8, 0xff, 56);  // impossible enum values, the index still right
  const Journal journal = ring.reader().Newest(4);
  ASSERT_EQ(journal.events.size(), 2u);
  EXPECT_EQ(journal.events.front().index, 3u);
  EXPECT_EQ(journal.missed, 2u);
  std::memset(ring.slot(0) - 64, 0xff, 5 * 64);  // even the head
  EXPECT_TRUE(ring.reader().Newest(4).events.empty());
  EXPECT_FALSE(ring.reader().Last());
}

TEST(Journal, ReaderWhileWritingSeesOnlyWholeEvents) {
  for (const std::size_t capacity : {2u, 8u, 1024u}) {
    Ring ring(capacity);
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
        ring.writer().Append(SelfDescribingEvent(i));
      }
    });
    std::uint64_t read = 0, newest_before = 0;
    const Deadline deadline = Deadline::AfterSeconds(20);
    while (read < 20'000 && !deadline.Passed()) {
      const Journal journal = ring.reader().Newest(capacity);
      for (std::size_t i = 0; i < journal.events.size(); ++i) {
        EXPECT_TRUE(IsWhole(journal.events[i]));
        EXPECT_EQ(journal.events[i].index, journal.events.front().index + i);
        ++read;
      }
      if (!journal.events.empty()) {
        EXPECT_GE(journal.events.back().index, newest_before);
        newest_before = journal.events.back().index;
      }
      const auto last = ring.reader().Last();
      EXPECT_TRUE(!last || IsWhole(*last));
    }
    stop = true;
    writer.join();
    EXPECT_GE(read, 20'000u) << "capacity " << capacity;
  }
}

// Memory whose slots can't be read until `on_read` was called, which happens once.
class Guarded {
 public:
  static constexpr std::size_t kCapacity = 1024;
  static constexpr std::size_t kHeadBytes = 4096;  // a page; the slots begin in it

  Guarded()
      : memory_(static_cast<std::byte*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    struct sigaction action = {};
    action.sa_handler = [](int) {
      Protect(PROT_READ | PROT_WRITE);
      guarded_->on_read_();
    };
    sigaction(SIGSEGV, &action, &before_);
    guarded_ = this;
  }
  ~Guarded() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, kBytes);
  }
  void Guard(std::function<void()> on_read) {
    on_read_ = std::move(on_read);
    Protect(PROT_NONE);
  }
  std::span<std::byte> bytes() { return {memory_, kBytes}; }

 private:
  static constexpr std::size_t kBytes = 32 * kHeadBytes;
  static void Protect(int how) {
    mprotect(guarded_->memory_ + kHeadBytes, kBytes - kHeadBytes, how);
  }
  static inline Guarded* guarded_ = nullptr;
  std::byte* memory_;
  std::function<void()> on_read_;
  struct sigaction before_ = {};
};

TEST(Journal, AWriterThatLapsTheRingBehindTheHeadLeavesNoEmptyJournal) {
  Guarded memory;
  JournalWriter writer = JournalWriter::Create(memory.bytes(), Guarded::kCapacity);
  const JournalReader reader(memory.bytes(), Guarded::kCapacity);
  std::uint64_t written = 0;
  const auto write = [&](std::size_t events) {
    for (std::size_t i = 0; i < events; ++i) writer.Append(SelfDescribingEvent(++written));
  };
  write(Guarded::kCapacity / 2);
  memory.Guard([&] { write(Guarded::kCapacity); });
  const Journal journal = reader.Newest(Guarded::kCapacity);
  ASSERT_EQ(journal.events.size(), Guarded::kCapacity);
  EXPECT_EQ(journal.events.back().index, written);
}

TEST(OpenOperation, NothingIsOpenInAnEmptyOrCompleteJournal) {
  EXPECT_FALSE(OpenOperation({}));
  Journal journal;
  journal.events = {Of(EventKind::kEnqueue, 0), Of(EventKind::kStart, 0), Of(EventKind::kEnd, 0),
                    Of(EventKind::kEnqueue, 1), Of(EventKind::kStart, 1), Of(EventKind::kError, 1),
                    Of(EventKind::kPhase, 0)};
  EXPECT_FALSE(OpenOperation(journal));
}

TEST(OpenOperation, TheStartedOneIsFoundWithItsNewestEvent) {
  Journal journal;
  journal.events = {Of(EventKind::kStart, 0), Of(EventKind::kEnd, 0), Of(EventKind::kEnqueue, 1),
                    Of(EventKind::kStart, 1), Of(EventKind::kPhase, 0)};
  const auto open = OpenOperation(journal);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->sequence, 1u);
  EXPECT_EQ(open->kind, EventKind::kStart);
}

TEST(OpenOperation, OfSeveralTheOldestIsOpen) {
  Journal journal;
  journal.events = {Of(EventKind::kEnqueue, 5), Of(EventKind::kEnqueue, 6),
                    Of(EventKind::kStart, 5),   Of(EventKind::kEnqueue, 7),
                    Of(EventKind::kStart, 6),   Of(EventKind::kEnd, 6)};
  EXPECT_EQ(OpenOperation(journal)->sequence, 5u);
}

TEST(OpenOperation, WhatRunsIsOpenBeforeWhatIsQueuedBehindIt) {
  Journal journal;
  journal.events = {Of(EventKind::kEnqueue, 5), Of(EventKind::kEnqueue, 6),
                    Of(EventKind::kStart, 5)};
  EXPECT_EQ(OpenOperation(journal)->sequence, 5u);
}

TEST(OpenOperation, CommunicatorsAreToldApart) {
  Journal journal;
  journal.events = {Of(EventKind::kStart, 4, 1), Of(EventKind::kStart, 4, 2),
                    Of(EventKind::kEnd, 4, 1)};
  EXPECT_EQ(OpenOperation(journal)->communicator, 2);
}

TEST(OpenOperation, ANewCaseLeavesTheOldOneBehind) {
  Journal journal;
  journal.events = {Of(EventKind::kStart, 4), Of(EventKind::kCase, 0)};
  EXPECT_FALSE(OpenOperation(journal));
}

TEST(EventNames, EveryValueHasItsOwnAndRubbishHasOneToo) {
  EXPECT_EQ(NameOf(EventKind::kNone), "none");
  EXPECT_EQ(NameOf(EventKind::kEnqueue), "enqueue");
  EXPECT_EQ(NameOf(EventKind::kIdle), "idle");
  EXPECT_EQ(NameOf(EventKind::kDeath), "death");
  EXPECT_EQ(NameOf(static_cast<EventKind>(99)), "unknown");
  EXPECT_EQ(NameOf(Phase::kStart), "start");
  EXPECT_EQ(NameOf(Phase::kCheck), "check");
  EXPECT_EQ(NameOf(Phase::kFinalize), "finalize");
  EXPECT_EQ(NameOf(static_cast<Phase>(99)), "unknown");
}

TEST(Shorten, KeepsWhatNothingNewerTells) {
  Journal journal;
  const auto add = [&](EventKind kind, std::uint16_t communicator, std::uint64_t sequence,
                       collective::Collective collective = collective::Collective::kAllReduce) {
    JournalEvent event;
    event.index = journal.events.size() + 1;
    event.kind = kind;
    event.communicator = communicator;
    event.sequence = sequence;
    event.collective = collective;
    journal.events.push_back(event);
  };
  add(EventKind::kStart, 9, 0);  // 1: of an earlier case, it did not end
  add(EventKind::kCase, 0, 0);
  add(EventKind::kStart, 1, 0);                               // 3
  add(EventKind::kEnd, 1, 0);                                 // 4: the newest of its communicator
  add(EventKind::kStart, 2, 0);                               // 5: does not end
  add(EventKind::kStart, 2, 1);                               // 6
  add(EventKind::kEnd, 2, 1);                                 // 7
  add(EventKind::kError, 0, 0);                               // 8
  add(EventKind::kEnd, 0, 1, collective::Collective::kSend);  // 9
  add(EventKind::kSplitEnd, 0, 0);                            // 10
  for (std::uint64_t sequence = 2; sequence < 20; ++sequence) add(EventKind::kEnd, 0, sequence);
  Journal whole = journal;
  Shorten(whole, journal.events.size());
  EXPECT_EQ(whole.missed, 0u);
  Shorten(journal, 3);
  std::vector<std::uint64_t> kept;
  for (const JournalEvent& event : journal.events) kept.push_back(event.index);
  EXPECT_EQ(kept, (std::vector<std::uint64_t>{1, 2, 4, 5, 7, 8, 9, 10, 25, 26, 27, 28}));
  EXPECT_EQ(journal.missed, 28u - kept.size());
}

}  // namespace
}  // namespace lockstep::journal
