// The host that a program runs on: its interfaces, and how many files it may open.
#include "core/control/machine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "core/control/open_files.h"

namespace lockstep::control {
namespace {

TEST(OpenFiles, AgentsTakeAllAndChildrenGetWhatWasGiven) {
  const auto soft = [] {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  };
  rlimit given{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &given), 0);
  given.rlim_cur = given.rlim_max - 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &given), 0);
  RaiseOpenFiles();
  EXPECT_EQ(soft(), given.rlim_max);
  EXPECT_EQ(InheritedOpenFiles(), given.rlim_max - 1);
  LimitOpenFiles(InheritedOpenFiles());
  EXPECT_EQ(soft(), given.rlim_max - 1);
  RaiseOpenFiles();
  EXPECT_TRUE(CheckOpenFiles(0, 1).ok());
  const Status many = CheckOpenFiles(0, static_cast<int>(std::min<rlim_t>(soft(), 1 << 30)));
  EXPECT_EQ(many.code(), StatusCode::kEnvironment);
  EXPECT_NE(many.message().find("the agent of rank 0 needs "), std::string::npos) << many.message();
}

TEST(Machine, Interfaces) {
  const auto loopback = InterfaceAddress("lo");
  ASSERT_TRUE(loopback.ok()) << loopback.status().message();
  EXPECT_EQ(*loopback, "127.0.0.1");
  EXPECT_EQ(*InterfaceAddress("127.0.0.1"), "127.0.0.1");
  const auto unknown = InterfaceAddress("nowhere7");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidInput);
  EXPECT_NE(unknown.status().message().find("nowhere7"), std::string::npos);
  const auto usual = InterfaceAddress("");
  if (usual.ok()) {
    EXPECT_NE(*usual, "127.0.0.1");
  }
}

}  // namespace
}  // namespace lockstep::control
