#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/library.h"
#include "core/comm/nccl/nccl_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::comm::nccl {
namespace {

using testing::HasSubstr;
using testing::Not;

NcclLibraryFacts Library(int minor, int patch) {
  const int code = VersionCode(2, minor, patch);
  return {"/x/libnccl.so.2", VersionText(code), code, false};
}

NcclChoices Choices(int ranks_per_gpu, bool graphs) {
  NcclChoices choices;
  choices.ranks_per_gpu = ranks_per_gpu;
  choices.graphs = graphs;
  return choices;
}

TEST(Remarks, NothingIsSaidOfAnOrdinaryRun) { EXPECT_EQ(RemarkOn(Library(28, 9), {}), ""); }

TEST(Remarks, RanksThatShareAGpuAreNoBandwidthFigure) {
  EXPECT_EQ(RemarkOn(Library(28, 9), Choices(2, false)),
            "2 ranks share a GPU, over sockets and in turns: not a bandwidth figure");
  EXPECT_EQ(RemarkOn(Library(30, 3), Choices(2, false)),
            "2 ranks share a GPU, in turns: not a bandwidth figure");
  EXPECT_THAT(RemarkOn(Library(30, 3), Choices(3, false)), HasSubstr("over sockets"));
}

TEST(Remarks, WhatIsKnownOfGraphsDependsOnTheVersion) {
  const NcclChoices graphs = Choices(1, true);
  EXPECT_EQ(RemarkOn(Library(28, 9), graphs),
            "collectives are captured once and replayed as a graph");
  EXPECT_EQ(RemarkOn(Library(27, 3), graphs), RemarkOn(Library(28, 9), graphs));
  EXPECT_THAT(RemarkOn(Library(21, 5), graphs), HasSubstr("2.21.5 is known to stall"));
  EXPECT_THAT(RemarkOn(Library(22, 3), graphs), Not(HasSubstr("stall")));
  EXPECT_THAT(RemarkOn(Library(26, 2), graphs), HasSubstr("race in NCCL 2.26.2"));
}

TEST(Remarks, AllOfThemAreTold) {
  NcclLibraryFacts library = Library(14, 3);
  library.stand_in = true;
  const std::string all = RemarkOn(library, Choices(2, true));
  EXPECT_THAT(all, HasSubstr("/x/libnccl.so.2 is a stand-in"));
  EXPECT_THAT(all, HasSubstr("; 2 ranks share a GPU"));
  EXPECT_THAT(all, HasSubstr("; collectives are captured once"));
  EXPECT_THAT(all, Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace lockstep::comm::nccl
