// Chains of processes, written down: which of them is the launcher.
#include "core/control/ancestors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep::control {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kSettings = {"OMPI_COMM_WORLD_RANK=1", "PMIX_NAMESPACE=77"};
const std::string kOfRank = "HOME=/root\0OMPI_COMM_WORLD_RANK=1\0PMIX_NAMESPACE=77\0"s;
const std::string kOfLauncher = "HOME=/root\0"s;

TEST(Launcher, IsTheParentWhereNothingStandsBetween) {
  EXPECT_EQ(LauncherAmong({{9, "mpirun", kOfLauncher}, {5, "bash", kOfLauncher}}, kSettings), 9);
}

// mpirun -np 2 timeout 60 sh -c bench_allreduce
TEST(Launcher, IsAboveWrappers) {
  const std::vector<Ancestor> ancestors = {
      {11, "sh", kOfRank}, {10, "timeout", kOfRank}, {9, "mpirun", kOfLauncher}};
  EXPECT_EQ(LauncherAmong(ancestors, kSettings), 9);
  EXPECT_TRUE(Inherited(ancestors[0], kSettings));
  EXPECT_FALSE(Inherited(ancestors[2], kSettings));
}

// A rank that starts an mpirun of its own: that inherited the variables of the other launch.
TEST(Launcher, OfALaunchInsideAnotherIsTheInner) {
  const std::string outer = "OMPI_COMM_WORLD_RANK=1\0PMIX_NAMESPACE=66\0"s;
  EXPECT_EQ(LauncherAmong({{9, "mpirun", outer}, {5, "mpirun", kOfLauncher}}, kSettings), 9);
}

TEST(Launcher, AValueThatOnlyBeginsAlikeIsAnother) {
  const std::string longer = "OMPI_COMM_WORLD_RANK=1\0PMIX_NAMESPACE=770\0"s;
  EXPECT_EQ(LauncherAmong({{9, "mpirun", longer}}, kSettings), 9);
}

// A container's starter, su, or a process that is just ending: what it is nobody knows.
TEST(Launcher, IsNotKnownBehindAProcessThatCannotBeRead) {
  EXPECT_EQ(LauncherAmong({{10, "starter", ""}, {9, "mpirun", kOfLauncher}}, kSettings),
            std::nullopt);
  EXPECT_EQ(LauncherAmong({{10, "sh", kOfRank}}, kSettings), std::nullopt);
  EXPECT_EQ(LauncherAmong({}, kSettings), std::nullopt);
}

TEST(Launcher, OfSlurmIsAnotherUser) {
  EXPECT_EQ(LauncherAmong({{10, "sh", kOfRank}, {9, "slurmstepd", ""}}, kSettings), 9);
}

TEST(Ancestors, BeginWithTheParent) {
  const std::vector<Ancestor> ancestors = Ancestors();
  ASSERT_FALSE(ancestors.empty());
  EXPECT_EQ(ancestors.front().pid, getppid());
}

TEST(Settings, AreThoseThatAreSet) {
  setenv("LOCKSTEP_TEST_SET", "a b", 1);
  unsetenv("LOCKSTEP_TEST_UNSET");
  EXPECT_EQ(SettingsOf({"LOCKSTEP_TEST_SET", "LOCKSTEP_TEST_UNSET"}),
            std::vector<std::string>{"LOCKSTEP_TEST_SET=a b"});
}

}  // namespace
}  // namespace lockstep::control
