#include "core/comm/nccl/remarks.h"

#include <vector>

#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/shared_gpu.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace lockstep::comm::nccl {
namespace {

// Every version that has non-blocking communicators can be captured (since 2.9), also by them: from
// 2.23.4 on another thread then launches, which a capture of this thread's allows. What is known of
// replays is no reason to refuse them, but to look here first when they stall.
std::string GraphRemark(const NcclLibraryFacts& library) {
  std::string remark = "collectives are captured once and replayed as a graph";
  if (library.version_code < VersionCode(2, 22, 3)) {
    remark += fmt::format(
        ", after some thousands of which NCCL {} is known to stall (NVIDIA/nccl#1251; 2.22.3)",
        library.version);
  } else if (library.version_code < VersionCode(2, 27, 3)) {
    remark +=
        fmt::format(", beside calls that are not, which race in NCCL {} (release notes of 2.27.3)",
                    library.version);
  }
  return remark;
}

}  // namespace

std::string RemarkOn(const NcclLibraryFacts& library, const NcclChoices& choices) {
  std::vector<std::string> remarks;
  if (library.stand_in) {
    remarks.push_back(fmt::format("{} is a stand-in for tests on host memory: not figures of NCCL",
                                  library.path));
  }
  if (choices.ranks_per_gpu > 1) {
    const bool sockets = !SharesDirectly(library.version_code, choices.ranks_per_gpu);
    remarks.push_back(fmt::format("{} ranks share a GPU, {}in turns: not a bandwidth figure",
                                  choices.ranks_per_gpu, sockets ? "over sockets and " : ""));
  }
  if (choices.graphs) remarks.push_back(GraphRemark(library));
  return fmt::format("{}", fmt::join(remarks, "; "));
}

}  // namespace lockstep::comm::nccl
