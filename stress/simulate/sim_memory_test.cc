#include "stress/simulate/sim_memory.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace lockstep::stress::simulate {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kGiB = 1 << 30;

TEST(SimMemoryTest, WhatFitsIsAllowed) {
  EXPECT_TRUE(CheckSimMemory(65'536, 2, {kNoLimit, kNoLimit}).ok());
  EXPECT_TRUE(CheckSimMemory(1'000, 2, {2 * kGiB, kGiB}).ok());
  EXPECT_TRUE(CheckSimMemory(2, 2, RoomOfThisProcess()).ok());
}

TEST(SimMemoryTest, TheLimitThatIsMetIsNamed) {
  const Status space = CheckSimMemory(65'536, 1, {2 * kGiB, kNoLimit});
  EXPECT_EQ(space.code(), StatusCode::kInvalidInput);
  EXPECT_NE(space.message().find("address space"), std::string::npos) << space.message();
  EXPECT_NE(space.message().find("ulimit -v"), std::string::npos) << space.message();
  const Status memory = CheckSimMemory(65'536, 1, {kNoLimit, kGiB});
  EXPECT_EQ(memory.code(), StatusCode::kInvalidInput);
  EXPECT_NE(memory.message().find("MemAvailable"), std::string::npos) << memory.message();
}

TEST(SimMemoryTest, NoRoomAtAll) {
  const Status none = CheckSimMemory(1, 1, {-1, kNoLimit});
  EXPECT_NE(none.message().find("may have 0 B: simulate at most 0 ranks"), std::string::npos)
      << none.message();
}

// What is proposed is allowed, and one more is not.
TEST(SimMemoryTest, TheRemedyHelps) {
  const MemoryRoom room = {2 * kGiB, kNoLimit};
  const std::string refused = CheckSimMemory(65'536, 1, room).message();
  const int most = std::stoi(refused.substr(refused.find("at most ") + 8));
  EXPECT_TRUE(CheckSimMemory(most, 1, room).ok());
  EXPECT_FALSE(CheckSimMemory(most + 1, 1, room).ok());
}

}  // namespace
}  // namespace lockstep::stress::simulate
