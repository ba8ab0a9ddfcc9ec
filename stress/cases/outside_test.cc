// Reads faults from scenario files and compares the orders and setups that agents get. It relies on
// the scenario reader, because a fault's keys are checked there.
#include "stress/faults/outside.h"

#include <string>

#include "core/control/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/cases/plan_faults.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::cases {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TextWith(const std::string& faults) {
  return "name = \"a/b\"\nranks = 3\n[workload]\nkind = \"all_reduce_loop\"\n" + faults;
}

std::vector<faults::PlannedFault> Planned(const std::string& faults) {
  const Result<scenario::Scenario> scenario = scenario::ParseScenario(TextWith(faults), "a.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  if (!scenario.ok()) return {};
  return PlanFaults(*scenario, 1);
}

TEST(OutsideFaults, OrdersCarryWhatTheFileSays) {
  using Kind = control::AgentFault::Kind;
  const struct {
    const char* text;
    Kind kind;
    double amount;
  } cases[] = {
      {"kind = \"cpu_hog\"\n", Kind::kCpuHog, 3},
      {"kind = \"cpu_hog\"\nprocesses = 7\n", Kind::kCpuHog, 7},
      {"kind = \"cpu_throttle\"\nshare = 0.25\n", Kind::kCpuThrottle, 0.25},
      {"kind = \"memory_pressure\"\nbytes = \"16M\"\n", Kind::kMemoryLimit, 16 << 20},
      {"kind = \"fd_exhaustion\"\ndescriptors = 4\n", Kind::kDescriptorLimit, 4},
      {"kind = \"low_memlock\"\nbytes = 4096\n", Kind::kLockedMemoryLimit, 4096},
      {"kind = \"shm_full\"\nbytes = \"64KiB\"\n", Kind::kShmFull, 65536},
      {"kind = \"clock_jump\"\nby = \"-90s\"\n", Kind::kClockJump, -90},
      {"kind = \"clock_jump\"\nby = \"2h\"\n", Kind::kClockJump, 7200},
      {"kind = \"environment\"\nvariables = [\"A=b\"]\n", Kind::kSetup, 0},
  };
  for (const auto& item : cases) {
    const auto planned =
        Planned("[[fault]]\nrank = 1\nat = \"init\"\nduration = \"2s\"\n" + std::string(item.text));
    ASSERT_EQ(planned.size(), 1u) << item.text;
    EXPECT_TRUE(faults::IsByAgent(planned[0].kind));
    const control::AgentFault order = faults::OrderFor(planned[0]);
    EXPECT_EQ(order.kind, item.kind) << item.text;
    EXPECT_EQ(order.amount, item.amount) << item.text;
    EXPECT_EQ(order.duration_seconds, 2) << item.text;
  }
  EXPECT_FALSE(faults::IsByAgent(faults::FaultKind::kKill));
  EXPECT_FALSE(faults::IsByAgent(faults::FaultKind::kHang));
}

TEST(OutsideFaults, WorkersAreStartedWithWhatTheirFaultsNeed) {
  const auto setups = faults::SetupsFor(
      Planned("[[fault]]\nkind = \"shm_full\"\nranks = [0, 2]\nbytes = 0\nat = \"init\"\n"
              "[[fault]]\nkind = \"clock_jump\"\nrank = 2\nby = \"1h\"\nat = \"iteration:1\"\n"
              "[[fault]]\nkind = \"environment\"\nrank = 2\nvariables = [\"A=b\", \"C=\"]\n"
              "at = \"init\"\n[[fault]]\nkind = \"kill\"\nrank = 1\nat = \"init\"\n"),
      3);
  ASSERT_EQ(setups.size(), 3u);
  EXPECT_TRUE(setups[1].empty());
  EXPECT_TRUE(setups[0].private_shm && setups[2].private_shm);
  EXPECT_FALSE(setups[0].movable_clock);
  EXPECT_TRUE(setups[2].movable_clock);
  EXPECT_THAT(setups[2].environment, ElementsAre("A=b", "C="));
}

TEST(OutsideFaults, SetupsAndOrdersTravel) {
  control::WorkerSetup setup;
  setup.environment = {"A=b", ""};
  setup.private_shm = true;
  const control::AgentFault order{control::AgentFault::Kind::kClockJump, -3.5, 0.25};
  const auto arrived = control::Decode<control::WorkerSetup>(control::Encode(setup));
  const auto got = control::Decode<control::AgentFault>(control::Encode(order));
  ASSERT_TRUE(arrived.has_value());
  ASSERT_TRUE(got.has_value());
  EXPECT_THAT(arrived->environment, ElementsAre("A=b", ""));
  EXPECT_TRUE(arrived->private_shm && !arrived->movable_clock);
  EXPECT_EQ(got->amount, -3.5);
  EXPECT_EQ(got->duration_seconds, 0.25);
  const std::string bytes = control::Encode(setup) + control::Encode(order);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    control::Decoder cut(std::string_view(bytes).substr(0, length));
    control::WorkerSetup some;
    control::AgentFault fault;
    cut(some, fault);
    EXPECT_FALSE(cut.ok()) << length;
  }
}

TEST(OutsideFaults, AKeyOfAnotherKindIsRefused) {
  const Result<scenario::Scenario> scenario = scenario::ParseScenario(
      TextWith("[[fault]]\nkind = \"cpu_hog\"\nrank = 1\nat = \"init\"\nshare = 0.5\n"), "a.toml");
  ASSERT_FALSE(scenario.ok());
  EXPECT_THAT(scenario.status().message(), HasSubstr("a.toml:9: key fault[0].share"));
}

}  // namespace
}  // namespace lockstep::stress::cases
