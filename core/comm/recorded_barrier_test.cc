// Operations behind a barrier: what the journal says while either runs, and what is timed.
#include "core/comm/testing/recorded_fixture.h"
#include "gtest/gtest.h"

namespace lockstep::comm {
namespace {

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

}  // namespace
}  // namespace lockstep::comm
