// The registry of faults: a row a fault, one injector, moments that are read as they are written.
#include "stress/faults/fault_registry.h"

#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::stress::faults {
namespace {

using ::testing::HasSubstr;

TEST(FaultRegistry, EachNameStandsOnceAndLeadsToItsRow) {
  std::set<std::string_view> names;
  for (const FaultInfo& info : AllFaults()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(FindFault(info.name), &InfoOf(info.kind));
    EXPECT_FALSE(info.help.empty()) << info.name;
  }
  EXPECT_EQ(FindFault("earthquake"), nullptr);
}

// What is injected from outside the worker is a signal, an agent's order, or a link's.
TEST(FaultRegistry, EveryFaultFromOutsideHasOneInjector) {
  for (const FaultInfo& info : AllFaults()) {
    const int injectors = (info.signal != 0) + info.order.has_value() + IsOfLink(info.kind);
    const bool outside = info.site == FaultSite::kOutside || info.site == FaultSite::kStart;
    EXPECT_EQ(injectors, outside ? 1 : 0) << info.name;
  }
}

TEST(FaultRegistry, EveryFaultOfTheProgramHasABody) {
  for (const FaultInfo& info : AllFaults()) {
    const bool injected = info.site == FaultSite::kProgram && info.name != "never_finalize";
    EXPECT_EQ(info.inject != nullptr, injected) << info.name;
  }
}

TEST(FaultRegistry, AFaultThatCodeDoesNotNameHasTheKindOfItsPlace) {
  for (std::size_t i = 0; i < AllFaults().size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(AllFaults()[i].kind), i) << AllFaults()[i].name;
  }
  EXPECT_EQ(NameOf(FaultKind::kExit), "exit");
  EXPECT_EQ(NameOf(FaultKind::kSlowCollective), "slow_collective");
}

TEST(FaultRegistry, AMomentIsReadAsItIsDescribed) {
  for (const char* at :
       {"init", "connect", "abort", "rebuild", "time:0.5s", "iteration:3", "collective:7",
        "backward:2", "epoch:1", "replay:4", "before:join_exit", "before:finalize"}) {
    const std::optional<FaultMoment> moment = ParseMoment(at);
    ASSERT_TRUE(moment.has_value()) << at;
    EXPECT_EQ(Describe(*moment), at);
    EXPECT_THAT(ListMoments(), HasSubstr(at));
  }
  for (const char* at :
       {"", "random", "iteration", "iteration:", "iteration:x", "iteration:-1", "iterations:3",
        "time:5", "time:", "init:3", "before:lunch", "iteration:1234567890123456789"}) {
    EXPECT_FALSE(ParseMoment(at).has_value()) << at;
  }
}

TEST(FaultRegistry, TheListHasARowAFaultAndItsKeys) {
  const std::string list = ListFaults();
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(list, '\n')), AllFaults().size() + 1);
  EXPECT_THAT(list, HasSubstr("share (0.1)"));
  EXPECT_THAT(list, HasSubstr("delay, jitter"));
}

}  // namespace
}  // namespace lockstep::stress::faults
