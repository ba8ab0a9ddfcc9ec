#include "core/coordinator/testing/fake_fleet.h"

#include "core/verdict/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::coordinator {
namespace {

using ::testing::ElementsAre;

std::string NameOf(const control::Message& message) { return std::to_string(message.type); }
FleetEventKind KindOf(FakeFleet& fleet, double seconds) {
  return fleet.Next(Deadline::AfterSeconds(seconds)).kind;
}

TEST(FakeFleet, TimePassesOnlyWhileSomebodyWaits) {
  FakeFleet fleet(1, {Exited(0, 3), After(5), Signalled(0, 9)}, NameOf);
  EXPECT_EQ(fleet.Next(Deadline::AfterNs(0)).exit_code, 3);
  EXPECT_EQ(KindOf(fleet, 0), FleetEventKind::kTimeout);
  EXPECT_EQ(fleet.seconds(), 0);
  EXPECT_EQ(KindOf(fleet, 2), FleetEventKind::kTimeout);
  EXPECT_EQ(fleet.seconds(), 2);
  EXPECT_EQ(KindOf(fleet, 60), FleetEventKind::kSignalled);
  EXPECT_EQ(fleet.seconds(), 5);
  EXPECT_EQ(KindOf(fleet, 60), FleetEventKind::kTimeout);
  EXPECT_EQ(fleet.seconds(), 65);
}

TEST(FakeFleet, AnAnswerWaitsForItsCommand) {
  FakeFleet fleet(2, {When("send 1 7"), Said(1, 8), When("send 1 7"), Said(1, 9)}, NameOf);
  fleet.Send(0, {7, ""});
  EXPECT_EQ(KindOf(fleet, 1), FleetEventKind::kTimeout);
  fleet.Send(1, {7, ""});
  EXPECT_EQ(fleet.Next(Deadline::AfterSeconds(1)).message.type, 8u);
  EXPECT_EQ(KindOf(fleet, 1), FleetEventKind::kTimeout);
  fleet.SendAll({7, ""});
  fleet.Send(1, {7, ""});
  EXPECT_EQ(fleet.Next(Deadline::AfterSeconds(1)).message.type, 9u);
  EXPECT_THAT(fleet.commands(), ElementsAre("send 0 7", "send 1 7", "send * 7", "send 1 7"));
  EXPECT_EQ(fleet.left(), 0u);
}

TEST(FakeFleet, EachLookShowsWhatIsListedForIt) {
  FakeFleet fleet(
      1, {Ranks({verdict::After49(0)}), Ranks({verdict::At50(0)}), Of(FleetEventKind::kQuiet, 0)},
      NameOf);
  const auto events = [&] {
    return fleet.Glance(Deadline::AfterNs(0)).at(0).journal.events.size();
  };
  EXPECT_EQ(events(), 0u);
  EXPECT_EQ(KindOf(fleet, 1), FleetEventKind::kQuiet);
  const std::size_t first = events();
  EXPECT_EQ(events(), first + 2);
  EXPECT_EQ(events(), first + 2);
}

TEST(FakeFleet, DataAndExitsAreTakenOutOfOrder) {
  FakeFleet fleet(2, {Said(0, 1), Wrote(1, "bytes"), After(1), Exited(1, 0), Exited(0, 0)}, NameOf);
  EXPECT_EQ(fleet.TakeData(Deadline::AfterNs(0)).at(0).message.payload, "bytes");
  EXPECT_EQ(fleet.Next(Deadline::AfterNs(0)).message.type, 1u);
  EXPECT_FALSE(fleet.AwaitExits(Deadline::AfterNs(0)));
  EXPECT_TRUE(fleet.AwaitExits(Deadline::AfterSeconds(2)));
}

TEST(FakeFleet, AHostIsLostAndAStartRefused) {
  FakeFleet fleet(2, {Refused(EnvironmentError("no room")), Lost(1, verdict::Loss::kClosed)},
                  NameOf, {"a", "b"});
  EXPECT_EQ(fleet.places()[1].loss, verdict::Loss::kNone);
  EXPECT_EQ(fleet.StartWorkers({}).message(), "no room");
  EXPECT_EQ(fleet.places()[1].loss,
            verdict::Loss::kClosed);  // whoever asks hears of it before Next tells
  EXPECT_EQ(KindOf(fleet, 0), FleetEventKind::kLost);
  EXPECT_EQ(fleet.places()[1].host, "b");
}

}  // namespace
}  // namespace lockstep::coordinator
