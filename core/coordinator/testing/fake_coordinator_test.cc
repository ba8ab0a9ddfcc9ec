// The fake itself: events in order, time that moves only when nothing has come, commands noted.
#include "core/coordinator/testing/fake_coordinator.h"

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;

std::string NameOf(const control::Message& message) { return std::to_string(message.type); }
EventKind KindOf(FakeCoordinator& coordinator, double seconds) {
  return coordinator.Next(Deadline::AfterSeconds(seconds)).kind;
}

TEST(FakeCoordinator, TimePassesOnlyWhileSomebodyWaits) {
  FakeCoordinator coordinator(1, {Exited(0, 3), After(5), Signalled(0, 9)}, NameOf);
  EXPECT_EQ(coordinator.Next(Deadline::AfterNs(0)).exit_code, 3);
  EXPECT_EQ(KindOf(coordinator, 0), EventKind::kTimeout);
  EXPECT_EQ(coordinator.seconds(), 0);
  EXPECT_EQ(KindOf(coordinator, 2), EventKind::kTimeout);
  EXPECT_EQ(coordinator.seconds(), 2);
  EXPECT_EQ(KindOf(coordinator, 60), EventKind::kSignalled);
  EXPECT_EQ(coordinator.seconds(), 5);
  EXPECT_EQ(KindOf(coordinator, 60), EventKind::kTimeout);
  EXPECT_EQ(coordinator.seconds(), 65);
}

TEST(FakeCoordinator, AnAnswerWaitsForItsCommand) {
  FakeCoordinator coordinator(2, {When("send 1 7"), Said(1, 8), When("send 1 7"), Said(1, 9)},
                              NameOf);
  coordinator.Send(0, {7, ""});
  EXPECT_EQ(KindOf(coordinator, 1), EventKind::kTimeout);
  coordinator.Send(1, {7, ""});
  EXPECT_EQ(coordinator.Next(Deadline::AfterSeconds(1)).message.type, 8u);
  EXPECT_EQ(KindOf(coordinator, 1), EventKind::kTimeout);
  coordinator.SendAll({7, ""});
  coordinator.Send(1, {7, ""});
  EXPECT_EQ(coordinator.Next(Deadline::AfterSeconds(1)).message.type, 9u);
  EXPECT_THAT(coordinator.commands(), ElementsAre("send 0 7", "send 1 7", "send * 7", "send 1 7"));
  EXPECT_EQ(coordinator.left(), 0u);
}

TEST(FakeCoordinator, EachLookShowsWhatIsListedForIt) {
  FakeCoordinator coordinator(
      1, {Ranks({verdict::After49(0)}), Ranks({verdict::At50(0)}), Of(EventKind::kQuiet, 0)},
      NameOf);
  const auto events = [&] { return coordinator.Glance().at(0).journal.events.size(); };
  EXPECT_EQ(events(), 0u);
  EXPECT_EQ(KindOf(coordinator, 1), EventKind::kQuiet);
  const std::size_t first = events();
  EXPECT_EQ(events(), first + 2);
  EXPECT_EQ(events(), first + 2);
}

TEST(FakeCoordinator, DataAndExitsAreTakenOutOfOrder) {
  FakeCoordinator coordinator(
      2, {Said(0, 1), Wrote(1, "bytes"), After(1), Exited(1, 0), Exited(0, 0)}, NameOf);
  EXPECT_EQ(coordinator.TakeData().at(0).message.payload, "bytes");
  EXPECT_EQ(coordinator.Next(Deadline::AfterNs(0)).message.type, 1u);
  EXPECT_FALSE(coordinator.AwaitExits(Deadline::AfterNs(0)));
  EXPECT_TRUE(coordinator.AwaitExits(Deadline::AfterSeconds(2)));
}

TEST(FakeCoordinator, AHostIsLostAndAStartRefused) {
  FakeCoordinator coordinator(
      2, {Refused(EnvironmentError("no room")), Lost(1, verdict::Loss::kClosed)}, NameOf,
      {"a", "b"});
  EXPECT_EQ(coordinator.places()[1].loss, verdict::Loss::kNone);
  EXPECT_EQ(coordinator.StartWorkers({}).message(), "no room");
  EXPECT_EQ(coordinator.places()[1].loss,
            verdict::Loss::kClosed);  // whoever asks hears of it before Next tells
  EXPECT_EQ(KindOf(coordinator, 0), EventKind::kLost);
  EXPECT_EQ(coordinator.places()[1].host, "b");
}

}  // namespace
}  // namespace lockstep::coordinator
