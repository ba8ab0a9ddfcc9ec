// Who is told to end waits a moment for the loss that may be why, and no longer.
#include "core/coordinator/lost_hosts.h"

#include "core/coordinator/testing/fake_coordinator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;

struct Awaited {
  std::vector<EventKind> handled = {};
  bool lost = false;
  double virtual_seconds = 0;
  std::size_t left = 0;  // of the list
};

Awaited Await(Script steps) {
  FakeCoordinator coordinator(2, std::move(steps),
                              [](const control::Message&) { return std::string(); }, {"a", "b"});
  Awaited awaited;
  awaited.lost = AwaitLostHosts(coordinator,
                                [&](const Event& event) { awaited.handled.push_back(event.kind); });
  awaited.virtual_seconds = coordinator.seconds();
  awaited.left = coordinator.left();
  return awaited;
}

TEST(LostHosts, AllHostsStayWhileOnlyWorkersAreGone) {
  const Awaited awaited = Await({Signalled(1, 9), After(0.1), Exited(0, 3)});
  EXPECT_FALSE(awaited.lost);
  EXPECT_THAT(awaited.handled,
              ElementsAre(EventKind::kSignalled, EventKind::kExited, EventKind::kTimeout));
  EXPECT_EQ(awaited.virtual_seconds, 0.2);
}

TEST(LostHosts, ALossEndsTheWait) {
  const Awaited awaited = Await(
      {Signalled(0, 15), After(0.1), Lost(1, verdict::Loss::kClosed), Of(EventKind::kTerminate)});
  EXPECT_TRUE(awaited.lost);
  EXPECT_THAT(awaited.handled, ElementsAre(EventKind::kSignalled, EventKind::kLost));
  EXPECT_EQ(awaited.virtual_seconds, 0.1);
  EXPECT_EQ(awaited.left, 1u);
}

TEST(LostHosts, ALossThatComesLaterIsNotAwaited) {
  const Awaited awaited = Await({After(0.3), Lost(1, verdict::Loss::kLauncher)});
  EXPECT_FALSE(awaited.lost);
  EXPECT_EQ(awaited.left, 2u);
}

TEST(LostHosts, WhatIsKnownIsNotAwaited) {
  FakeCoordinator coordinator(2, {Lost(0, verdict::Loss::kLauncher)},
                              [](const control::Message&) { return std::string(); });
  EXPECT_FALSE(HostsAreLost(coordinator));
  coordinator.Next(Deadline::AfterNs(0));
  EXPECT_TRUE(HostsAreLost(coordinator));
  EXPECT_TRUE(AwaitLostHosts(coordinator, [](const Event&) { FAIL() << "nothing is waited for"; }));
}

}  // namespace
}  // namespace lockstep::coordinator
