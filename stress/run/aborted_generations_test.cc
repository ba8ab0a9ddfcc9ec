#include "stress/run/aborted_generations.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/comm/null/null_communicator.h"

namespace lockstep::stress::run {
namespace {

std::shared_ptr<comm::Communicator> Alone() { return comm::null::ConnectNull(0, 1).value(); }

TEST(AbortedGenerationsTest, TheCommunicatorOfAGenerationIsAborted) {
  AbortedGenerations aborted;
  const std::shared_ptr<comm::Communicator> first = Alone();
  EXPECT_TRUE(aborted.Begin(0, first));
  EXPECT_FALSE(aborted.Contains(0));
  EXPECT_EQ(aborted.GiveUp(0), first);
  EXPECT_TRUE(aborted.Contains(0));
  EXPECT_FALSE(aborted.Contains(1));
}

// A rank may hear that the next generation is given up before it has begun with it.
TEST(AbortedGenerationsTest, AnOrderThatComesFirstHolds) {
  AbortedGenerations aborted;
  const std::shared_ptr<comm::Communicator> first = Alone();
  EXPECT_TRUE(aborted.Begin(0, first));
  EXPECT_EQ(aborted.GiveUp(0), first);
  EXPECT_EQ(aborted.GiveUp(1), nullptr) << "the communicator of generation 0 is not of 1";
  aborted.End();
  EXPECT_TRUE(aborted.Contains(1));
  EXPECT_FALSE(aborted.Begin(1, Alone()));
  EXPECT_EQ(aborted.GiveUp(1), nullptr);
  EXPECT_TRUE(aborted.Begin(2, Alone()));
}

TEST(AbortedGenerationsTest, NobodyAbortsWhatHasEnded) {
  AbortedGenerations aborted;
  EXPECT_TRUE(aborted.Begin(0, Alone()));
  aborted.End();
  EXPECT_EQ(aborted.GiveUp(0), nullptr);
}

}  // namespace
}  // namespace lockstep::stress::run
