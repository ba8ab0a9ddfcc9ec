// Joins the three choices of the NCCL backend: library, device and number of ranks a GPU. They come
// from environment variables, which agents pass to their workers. A stand-in library needs no GPU
// and gets the host's streams.
#include "core/comm/nccl/nccl_backend.h"

#include <utility>
#include <vector>

#include "core/comm/nccl/abi.h"
#include "core/comm/nccl/choices.h"
#include "core/comm/nccl/debug_log.h"
#include "core/comm/nccl/library.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace lockstep::comm::nccl {
namespace {

Result<NcclPlatform> OpenStandIn(int local_rank) {
  NcclPlatform platform;
  // Where a GPU of that rank would sit, for stand-ins of the driver's library.
  platform.gpu_bus = fmt::format("0000:{:02x}:00.0", local_rank + 1);
  return platform;
}

Result<NcclPlatform> OpenFor(const NcclLibraryFacts& library, int local_rank, bool host_access) {
  if (library.stand_in) return OpenStandIn(local_rank);
  return OpenOnCuda(library, local_rank, host_access);
}

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

NcclOptions NcclOptionsFromEnvironment() {
  const NcclChoices choices = NcclChoicesFromEnvironment();
  return NcclOptions{.library = choices.library, .register_buffers = choices.registers};
}

Result<NcclPlatform> OpenNccl(int local_rank, bool host_access) {
  const std::string log_file = CaptureDebugLog();
  const NcclChoices choices = NcclChoicesFromEnvironment();
  LOCKSTEP_ASSIGN_OR_RETURN(const NcclLibraryFacts library, ExamineNccl(choices.library));
  LOCKSTEP_ASSIGN_OR_RETURN(NcclPlatform platform, OpenFor(library, local_rank, host_access));
  platform.log_file = log_file;
  platform.remark = RemarkOn(library, choices);
  return platform;
}

const Capabilities& NcclBackendCapabilities() {
  static const Capabilities capabilities = [] {
    Capabilities made = NcclCapabilities();
    made.supports = [](const Operation& operation) {
      if (!collective::IsFloat8(operation.type)) return OkStatus();
      const auto library = Library::Open(NcclChoicesFromEnvironment().library);
      // One that cannot be opened is the workers' to report.
      return library.ok() ? (*library)->Takes(operation, /*compute_capability=*/0) : OkStatus();
    };
    return made;
  }();
  return capabilities;
}

std::string NcclVersion() {
  const auto library = ExamineNccl(NcclChoicesFromEnvironment().library);
  if (!library.ok()) return "unknown";
  return fmt::format("{} ({})", library->version, library->path);
}

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
