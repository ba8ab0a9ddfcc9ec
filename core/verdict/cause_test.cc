#include "core/verdict/cause.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

TEST(Causes, EachNameStandsOnceAndIsReadBack) {
  std::set<std::string_view> names;
  for (const CauseInfo& info : kCauses) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(FindingCause::Named(info.name).known(), info.cause);
  }
}

TEST(Causes, ANameOfAnotherVersionStaysItself) {
  const FindingCause foreign = FindingCause::Named("rank_enchanted");
  EXPECT_EQ(foreign.known(), Cause::kForeign);
  EXPECT_EQ(foreign.name(), "rank_enchanted");
  EXPECT_EQ(foreign, FindingCause::Named("rank_enchanted"));
  EXPECT_NE(foreign, FindingCause::Named("shm_small"));
  EXPECT_NE(foreign, Cause::kUnknown);
}

TEST(Causes, ScenariosExpectOnlyWhatCasesEndWith) {
  EXPECT_THAT(NamesOfCases(), ::testing::Contains("rank_killed"));
  EXPECT_THAT(NamesOfCases(), ::testing::Not(::testing::Contains("slow_host")));
}

}  // namespace
}  // namespace lockstep::verdict
