// What a rank works on, and what the environment carries to it.
#include "core/comm/nccl/choices.h"

#include <cstdlib>
#include <map>
#include <string>

#include "core/comm/nccl/abi.h"
#include "gtest/gtest.h"

namespace lockstep::comm::nccl {
namespace {

std::map<std::string, std::string> Variables(int version, int rank, int ranks) {
  const auto list = SharedGpuVariables(version, rank, ranks);
  return {list.begin(), list.end()};
}

TEST(SharedGpu, RanksAreHostsOfTheirOwnUntilNcclAllowsTwo) {
  const auto old = Variables(VersionCode(2, 28, 9), 1, 2);
  EXPECT_NE(old.at("NCCL_HOSTID"), Variables(VersionCode(2, 28, 9), 0, 2).at("NCCL_HOSTID"));
  EXPECT_EQ(old.at("NCCL_NET"), "Socket");
  EXPECT_EQ(old.count("NCCL_MULTI_RANK_GPU_ENABLE"), 0u);
  const auto two = Variables(VersionCode(2, 30, 3), 1, 2);
  EXPECT_EQ(two.at("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
  EXPECT_EQ(two.count("NCCL_HOSTID"), 0u);
  // It allows two, not more.
  EXPECT_EQ(Variables(VersionCode(2, 30, 3), 1, 3).count("NCCL_HOSTID"), 1u);
}

TEST(SharedGpu, WhatTheUserSetStays) {
  setenv("NCCL_MAX_CTAS", "7", 1);
  ShareGpu(VersionCode(2, 28, 9), 0, 2);
  EXPECT_STREQ(std::getenv("NCCL_MAX_CTAS"), "7");
  EXPECT_STREQ(std::getenv("NCCL_SOCKET_IFNAME"), "lo");
}

TEST(DeviceOf, IsTheOneThatALauncherGave) {
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(DeviceOf(3, 1), 3);
  EXPECT_EQ(DeviceOf(3, 2), 1);
  setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7", 1);
  EXPECT_EQ(DeviceOf(3, 1), 3) << "the fourth of those that it sees";
  for (const char* one : {"3", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"}) {
    setenv("CUDA_VISIBLE_DEVICES", one, 1);
    EXPECT_EQ(DeviceOf(3, 1), 0) << one;
  }
}

TEST(Choices, TravelThroughTheEnvironment) {
  EXPECT_EQ(NcclChoicesFromEnvironment().ranks_per_gpu, 1);
  ASSERT_TRUE(
      ExportNcclChoices({.library = "/x/libnccl.so", .ranks_per_gpu = 3, .registers = true}).ok());
  const NcclChoices choices = NcclChoicesFromEnvironment();
  EXPECT_EQ(choices.library, "/x/libnccl.so");
  EXPECT_EQ(choices.ranks_per_gpu, 3);
  EXPECT_TRUE(choices.registers);
  for (const int ranks : {-1, 0, 65}) {
    EXPECT_EQ(ExportNcclChoices({.library = "", .ranks_per_gpu = ranks, .registers = false}).code(),
              StatusCode::kInvalidInput);
  }
  EXPECT_EQ(NcclChoicesFromEnvironment(), choices);
  ASSERT_TRUE(ExportNcclChoices({}).ok());
  EXPECT_EQ(NcclChoicesFromEnvironment(), NcclChoices{});
}

}  // namespace
}  // namespace lockstep::comm::nccl
