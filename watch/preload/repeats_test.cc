// Which calls are counted, and that what is counted says the same as events would.
#include "watch/preload/repeats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace lockstep::watch::preload {
namespace {

using events::Call;
using events::Event;
using events::Phase;
using testing::Each;
using testing::ElementsAre;

Event Enter(std::uint64_t site) {
  Event event;
  event.phase = Phase::kEnter;
  event.call = Call::kBarrier;
  event.site = site;
  event.ticks = 7;
  return event;
}

// As the recorder does, but with room for all. Calls differ by their site, and go to it.
class RepeatsTest : public testing::Test {
 protected:
  void Call(std::uint64_t site, bool returns_in_place = true) {
    const Event event = Enter(site);
    const AsCalled as_called = {.site = Place(site), .words = {site}};
    if (const void* const forward = repeats_.Again(as_called, kThread)) {
      EXPECT_EQ(forward, Place(site));
      ++as_before_;
      return Return(returns_in_place);
    }
    if (repeats_.counting()) {
      if (repeats_.Enter(event)) {
        repeats_.Learn(as_called, Place(site));
        return Return(returns_in_place);
      }
      ended_ += repeats_.End();
    }
    Event* const place = &events_.at(head_);
    if (repeats_.Comes(event, head_++)) {
      repeats_.Begin(place, kThread, 7);
      repeats_.Learn(as_called, Place(site));
      return Return(returns_in_place);
    }
    *place = event;
    repeats_.Note(place, head_ - 1);
    if (returns_in_place) place->phase = Phase::kEnterLeft;
    if (!returns_in_place) Other(Phase::kLeave);
  }
  void Return(bool in_place) {
    if (!in_place) return Other(Phase::kLeave);
    EXPECT_TRUE(repeats_.Leave());
  }
  void Other(Phase phase) {
    if (repeats_.counting()) ended_ += repeats_.End();
    events_.at(head_++).phase = phase;
  }
  // Sites of entered calls, in their order.
  std::vector<std::uint64_t> Entered() const {
    std::vector<std::uint64_t> sites;
    for (std::size_t at = 0; at < head_; ++at) {
      const Event& event = events_[at];
      const std::int64_t steps = event.phase == Phase::kAgain ? event.count : 0;
      for (std::int64_t step = 0; step < steps; step += 2) {
        sites.push_back(events::EventAgain(&event, step).site);
      }
      if (events::BeforeLeft(event.phase) == Phase::kEnter) sites.push_back(event.site);
    }
    return sites;
  }

  static constexpr std::uint16_t kThread = 3;
  [[gnu::noinline]] const void* Again(const AsCalled& call, std::uint16_t thread) {
    return repeats_.Again(call, thread);
  }
  const void* Place(std::uint64_t site) const { return &events_.at(site); }

  Repeats repeats_;
  std::vector<Event> events_ = std::vector<Event>(3 * events::kChunkEvents);
  std::size_t head_ = 0;
  std::uint64_t ended_ = 0;
  int as_before_ = 0;  // calls that were known before they were translated
};

TEST_F(RepeatsTest, OneCall) {
  for (int turn = 0; turn < 1000; ++turn) Call(1);
  EXPECT_EQ(head_, 4u);
  EXPECT_EQ(events_[3].phase, Phase::kAgain);
  EXPECT_EQ(events_[3].peer, 1);
  EXPECT_EQ(events_[3].count, 2 * 997);
  EXPECT_EQ(Entered().size(), 1000u);
  EXPECT_THAT(Entered(), Each(1u));
  EXPECT_EQ(as_before_, 996);
}

TEST_F(RepeatsTest, OnlyWhatIsCalledAsBefore) {
  for (std::uint64_t turn = 0; turn < 12; ++turn) Call(turn % 2);
  const AsCalled next = {.site = Place(0), .words = {0}};
  AsCalled other = next;
  EXPECT_EQ(Again(next, kThread + 1), nullptr);
  for (std::uint64_t& word : other.words) {
    ++word;
    EXPECT_EQ(Again(other, kThread), nullptr);
    --word;
  }
  other.site = Place(1);
  EXPECT_EQ(Again(other, kThread), nullptr);
  other = next;
  other.call = 1;
  EXPECT_EQ(Again(other, kThread), nullptr);
  EXPECT_EQ(Again(next, kThread), Place(0));
  EXPECT_EQ(Again({.site = Place(1), .words = {1}}, kThread), nullptr);  // it is inside
  EXPECT_TRUE(repeats_.Leave());
  Other(Phase::kPart);
  EXPECT_EQ(Again({.site = Place(1), .words = {1}}, kThread), nullptr);
}

TEST_F(RepeatsTest, FourCallsInTurn) {
  for (std::uint64_t turn = 0; turn < 1002; ++turn) Call(turn % 4);
  EXPECT_EQ(head_, 13u);
  EXPECT_EQ(events_[12].peer, 4);
  EXPECT_EQ(events_[12].count, 2 * 990);
  Call(5);  // instead of 2
  EXPECT_FALSE(repeats_.counting());
  EXPECT_EQ(ended_, 2u * 990);
  const std::vector<std::uint64_t> entered = Entered();
  ASSERT_EQ(entered.size(), 1003u);
  for (std::uint64_t turn = 0; turn < 1002; ++turn) EXPECT_EQ(entered[turn], turn % 4);
  EXPECT_EQ(entered.back(), 5u);
}

TEST_F(RepeatsTest, FiveAreTooMany) {
  for (std::uint64_t turn = 0; turn < 1000; ++turn) Call(turn % 5);
  EXPECT_EQ(head_, 1000u);
}

TEST_F(RepeatsTest, OnlyCallsThatReturnInTheirPlace) {
  for (int turn = 0; turn < 100; ++turn) Call(1, false);
  EXPECT_EQ(head_, 200u);
  for (int turn = 0; turn < 100; ++turn) Call(1);
  EXPECT_EQ(head_, 204u);
  Call(1, false);  // counted, but it returns with an error
  EXPECT_EQ(events_[203].count % 2, 1);
  EXPECT_EQ(events_[204].phase, Phase::kLeave);
  EXPECT_FALSE(repeats_.counting());
}

TEST_F(RepeatsTest, OtherEventsBetweenThem) {
  for (int turn = 0; turn < 100; ++turn) {
    Call(1);
    Other(Phase::kMade);
  }
  EXPECT_EQ(head_, 200u);
}

TEST_F(RepeatsTest, TheyLieInOneChunk) {
  for (std::uint64_t site = 100; head_ < events::kChunkEvents - 2; ++site) Call(site);
  for (int turn = 0; turn < 100; ++turn) Call(1);
  ASSERT_EQ(head_, events::kChunkEvents + 4);
  EXPECT_EQ(events_[events::kChunkEvents + 3].phase, Phase::kAgain);
}

TEST_F(RepeatsTest, RandomCallsAreSaidAsTheyWere) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    repeats_ = {};
    head_ = 0;
    as_before_ = 0;
    std::mt19937 random(seed);
    std::vector<std::uint64_t> called;
    while (called.size() < 1000) {
      const std::uint64_t length = 1 + random() % 5;
      const std::uint64_t turns = random() % 40;
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        called.push_back(turn % length);
        Call(called.back(), random() % 97 != 0);
      }
      if (random() % 3 == 0) Other(Phase::kPart);
    }
    ASSERT_EQ(Entered(), called);
    ASSERT_GT(as_before_, 100);
  }
}

}  // namespace
}  // namespace lockstep::watch::preload
