// What a reader makes of events that say later that their call returned.
#include "watch/run/segment_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "watch/run/testing/segment_file.h"

namespace lockstep::watch::run {
namespace {

using events::Call;
using events::Event;
using events::Phase;
using testing::ElementsAre;

class SegmentReaderTest : public testing::Test {
 protected:
  SegmentReaderTest() {
    const std::string path = testing::TempDir() + "segment";
    header_ = MakeSegment(path);
    for (std::uint32_t place = 0; place < events::kChunks; ++place) header_->places[place] = place;
    header_->ready = events::kChunks;
    reader_ = std::move(SegmentReader::Open(path)).value();
    unlink(path.c_str());
  }
  ~SegmentReaderTest() override { munmap(header_, events::kSegmentBytes); }

  Event& At(std::uint64_t event) {
    return *reinterpret_cast<Event*>(reinterpret_cast<char*>(header_) +
                                     events::OffsetOf(*header_, event));
  }
  void Write(Phase phase) {
    Event event;
    event.phase = phase;
    event.call = Call::kBarrier;
    event.thread = 3;
    if (phase == Phase::kLeave) event.peer = 0;  // without an error
    At(header_->head++) = event;
  }
  void Leave() {
    Event& newest = At(header_->head - 1);
    newest.phase = events::LeftAfter(newest.phase);
  }
  std::vector<Phase> Read(std::uint64_t most = 1'000'000) {
    std::vector<Phase> phases;
    const std::uint64_t before = reader_->read();
    const std::uint64_t count = reader_->Drain(most, [&](std::span<const Event> some) {
      for (const Event& event : some) {
        phases.push_back(event.phase);
        EXPECT_TRUE(event.thread == 3 && event.call == Call::kBarrier);
      }
    });
    EXPECT_EQ(reader_->read(), before + count);
    return phases;
  }

  events::Header* header_;
  std::unique_ptr<SegmentReader> reader_;
};

TEST_F(SegmentReaderTest, ACallThatReturnedIsOneEventAndCountsTwice) {
  Write(Phase::kEnter);
  Leave();
  EXPECT_GT(reader_->begun(), reader_->read());
  EXPECT_THAT(Read(), ElementsAre(Phase::kEnterLeft));
  EXPECT_EQ(reader_->read(), 2u);
  EXPECT_EQ(reader_->begun(), 2u);
  EXPECT_THAT(Read(), ElementsAre());
}

TEST_F(SegmentReaderTest, WhatIsAddedToAnEventThatWasReadIsGivenByItself) {
  Write(Phase::kEnter);
  EXPECT_THAT(Read(), ElementsAre(Phase::kEnter));
  EXPECT_EQ(reader_->begun(), reader_->read());
  Leave();
  EXPECT_EQ(reader_->begun(), reader_->read() + 1);  // so two looks differ
  EXPECT_THAT(Read(), ElementsAre(Phase::kLeave));
  EXPECT_EQ(reader_->begun(), reader_->read());
  EXPECT_THAT(Read(), ElementsAre());
}

TEST_F(SegmentReaderTest, ItComesBeforeWhatWasWrittenAfterIt) {
  Write(Phase::kEnter);
  Write(Phase::kDone);
  EXPECT_THAT(Read(), ElementsAre(Phase::kEnter, Phase::kDone));
  Leave();
  Write(Phase::kEnter);
  EXPECT_GT(reader_->begun(), reader_->read());
  EXPECT_THAT(Read(), ElementsAre(Phase::kLeave, Phase::kEnter));
  Write(Phase::kLeave);
  EXPECT_THAT(Read(), ElementsAre(Phase::kLeave));
}

// An event that was begun and is not whole is not read, and no look may take it for read.
TEST_F(SegmentReaderTest, WhatIsBegunCounts) {
  Write(Phase::kEnter);
  Read();
  ++header_->head;
  EXPECT_THAT(Read(), ElementsAre());
  EXPECT_EQ(reader_->begun(), reader_->read() + 1);
}

class Again : public SegmentReaderTest {
 protected:
  Again() {
    for (const Call call : {Call::kBarrier, Call::kAllreduce}) {
      Write(Phase::kEnter);
      At(header_->head - 1).call = call;
      Leave();
    }
  }
  // The two calls come again, `steps` entries and returns.
  void Count(std::int64_t steps) {
    Event again;
    again.phase = Phase::kAgain;
    again.thread = 3;
    again.peer = 2;
    again.count = steps;
    at_ = header_->head++;
    At(at_) = again;
  }
  void CountOn(std::int64_t steps) { At(at_).count += steps; }
  // "Barrier+" where it is entered, "-" where it returns.
  std::vector<std::string> Said(std::uint64_t most = 1'000'000) {
    std::vector<std::string> said;
    const std::uint64_t before = reader_->read();
    const std::uint64_t count = reader_->Drain(most, [&](std::span<const Event> some) {
      for (const Event& event : some) {
        said.push_back(event.call == Call::kBarrier ? "Barrier" : "Allreduce");
        said.back() += event.phase == Phase::kEnter ? "+" : event.phase == Phase::kLeave ? "-" : "";
        EXPECT_TRUE(event.phase != Phase::kLeave || event.peer == 0);
      }
    });
    EXPECT_EQ(reader_->read(), before + count);
    return said;
  }

  std::uint64_t at_ = 0;
};

TEST_F(Again, EachIsGivenAsAnEventOfItsOwn) {
  Count(5);
  EXPECT_GT(reader_->begun(), reader_->read());
  EXPECT_THAT(Said(), ElementsAre("Barrier", "Allreduce", "Barrier", "Allreduce", "Barrier+"));
  EXPECT_EQ(reader_->read(), 9u);
  EXPECT_EQ(reader_->begun(), 9u);
  EXPECT_THAT(Said(), ElementsAre());
  CountOn(1);
  EXPECT_EQ(reader_->begun(), 10u);  // so two looks differ
  EXPECT_THAT(Said(), ElementsAre("Barrier-"));
  CountOn(4);
  EXPECT_EQ(reader_->begun(), 14u);
  EXPECT_THAT(Said(), ElementsAre("Allreduce", "Barrier"));
  EXPECT_EQ(reader_->begun(), reader_->read());
}

TEST_F(Again, ACallThatStillRunsReturnsBeforeThem) {
  Write(Phase::kEnter);
  EXPECT_THAT(Said(), ElementsAre("Barrier", "Allreduce", "Barrier+"));
  Leave();
  Count(1);
  EXPECT_THAT(Said(), ElementsAre("Barrier-", "Allreduce+"));
}

TEST_F(Again, WhatComesAfterThemEndsThem) {
  Count(3);
  EXPECT_THAT(Said(), ElementsAre("Barrier", "Allreduce", "Barrier", "Allreduce+"));
  CountOn(2);
  ++header_->head;  // is not whole yet
  EXPECT_GT(reader_->begun(), reader_->read() + 2);
  EXPECT_THAT(Said(), ElementsAre("Allreduce-", "Barrier+"));
  EXPECT_EQ(reader_->begun(), reader_->read() + 1);
  --header_->head;
  Write(Phase::kLeave);
  Write(Phase::kEnter);
  EXPECT_THAT(Said(), ElementsAre("Barrier-", "Barrier+"));
  EXPECT_EQ(reader_->begun(), reader_->read());
  Leave();
  EXPECT_THAT(Said(), ElementsAre("Barrier-"));
}

TEST_F(Again, WhatCannotBeIsNotRead) {
  Count(4);
  for (const std::int32_t length : {0, -1, 3, 5}) {
    At(at_).peer = length;
    EXPECT_THAT(Said().size(), length == 0 ? 2u : 0u);
  }
  At(at_).peer = 2;
  EXPECT_THAT(Said(), ElementsAre("Barrier", "Allreduce"));
}

TEST_F(Again, SomeAtATime) {
  Count(1000);
  CountOn(1);
  Write(Phase::kLeave);
  Said(2);
  for (int turn = 0; turn < 100; ++turn) {
    EXPECT_THAT(Said(5).size(), 5u);
    EXPECT_GT(reader_->begun(), reader_->read());
  }
  EXPECT_THAT(Said(), ElementsAre("Barrier+", "Barrier-"));
  EXPECT_EQ(reader_->begun(), reader_->read());
}

TEST_F(Again, WhatIsOverIsTakenUnread) {
  Count(5);
  EXPECT_EQ(reader_->Coming().length, 0u);  // others come before
  Said();
  CountOn(9);
  events::Cycle cycle = reader_->Coming();
  EXPECT_EQ(cycle.length, 2u);
  EXPECT_TRUE(cycle.inside);
  EXPECT_THAT(Said(1), ElementsAre("Barrier-"));
  cycle = reader_->Coming();
  EXPECT_FALSE(cycle.inside);
  EXPECT_EQ(cycle.over, 4u);  // 7 calls without those 3
  EXPECT_EQ(cycle.calls[0].call, Call::kAllreduce);
  EXPECT_EQ(cycle.calls[1].call, Call::kBarrier);
  EXPECT_EQ(cycle.calls[1].phase, Phase::kEnterLeft);
  const std::uint64_t before = reader_->read();
  reader_->Pass(3);
  EXPECT_EQ(reader_->read(), before + 6);
  EXPECT_EQ(reader_->begun(), before + 8);
  EXPECT_EQ(reader_->Coming().over, 1u);
  CountOn(1);
  EXPECT_THAT(Said(), ElementsAre("Barrier", "Allreduce+"));
  EXPECT_EQ(reader_->begun(), reader_->read());
  EXPECT_EQ(reader_->Coming().over, 0u);
}

TEST_F(SegmentReaderTest, TheChunkOfTheNewestEventStays) {
  for (std::uint64_t each = 0; each < 3 * events::kChunkEvents; ++each) Write(Phase::kEnter);
  EXPECT_EQ(Read().size(), 3 * events::kChunkEvents);
  EXPECT_EQ(header_->tail.load(), 2 * events::kChunkEvents);
  Leave();
  EXPECT_THAT(Read(), ElementsAre(Phase::kLeave));
  Write(Phase::kEnter);
  EXPECT_THAT(Read(1), ElementsAre(Phase::kEnter));
}

}  // namespace
}  // namespace lockstep::watch::run
