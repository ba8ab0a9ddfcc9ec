#include "core/worker/connecting_meeting.h"

#include <cstddef>

#include "core/comm/local_meeting.h"
#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

constexpr std::size_t kEvents = 16;

class ConnectingMeetingTest : public testing::Test {
 protected:
  std::uint64_t Written() const {
    const auto last = journal::JournalReader(memory_.bytes, kEvents).Last();
    if (!last) return 0;
    EXPECT_EQ(last->phase, journal::Phase::kConnect);
    return last->index;
  }

  struct alignas(64) Memory {
    std::byte bytes[64 * (kEvents + 2)] = {};
  };
  Memory memory_;
  journal::JournalWriter journal_ = journal::JournalWriter::Create(memory_.bytes, kEvents);
  comm::LocalMeeting ranks_;
  ConnectingMeeting meeting_{ranks_};
};

TEST_F(ConnectingMeetingTest, EveryExchangeWhileItConnectsIsProgress) {
  EXPECT_TRUE(meeting_.Put("before", "1").ok());
  EXPECT_EQ(Written(), 0u);
  meeting_.Begin(journal_);
  EXPECT_EQ(Written(), 1u);
  EXPECT_TRUE(meeting_.Put("address", "2").ok());
  EXPECT_EQ(Written(), 2u);
  EXPECT_EQ(*meeting_.Get("address", Deadline::AfterSeconds(60)), "2");
  EXPECT_EQ(Written(), 3u);
  meeting_.End();
  EXPECT_TRUE(meeting_.Get("before", Deadline::AfterSeconds(60)).ok());
  EXPECT_EQ(Written(), 3u) << "other threads may write to the journal now";
}

TEST_F(ConnectingMeetingTest, WhatNobodyPutIsNoProgress) {
  meeting_.Begin(journal_);
  EXPECT_FALSE(meeting_.Get("address", Deadline::AfterSeconds(0)).ok());
  EXPECT_EQ(Written(), 1u);
}

}  // namespace
}  // namespace lockstep::worker
