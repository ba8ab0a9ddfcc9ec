#include "core/comm/nccl/shared_gpu.h"

#include <cstdlib>

#include "core/base/process_stat.h"
#include "core/comm/nccl/abi.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {

std::vector<std::pair<std::string, std::string>> SharedGpuVariables(int version, int local_rank,
                                                                    int ranks_per_gpu) {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"NCCL_NVLS_ENABLE", "0"},
      {"NCCL_MIN_CTAS", "1"},
      {"NCCL_MAX_CTAS", "2"},
      // Its port is one a host, and these ranks are many hosts on one.
      {"NCCL_RAS_ENABLE", "0"},
  };
  if (SharesDirectly(version, ranks_per_gpu)) {
    variables.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    return variables;
  }

  variables.emplace_back("NCCL_HOSTID", fmt::format("{}-rank{}", HostName(), local_rank));
  variables.emplace_back("NCCL_NET", "Socket");
  variables.emplace_back("NCCL_IB_DISABLE", "1");
  variables.emplace_back("NCCL_SOCKET_IFNAME", "lo");
  variables.emplace_back("NCCL_MNNVL_ENABLE", "0");
  variables.emplace_back("NCCL_CUMEM_ENABLE", "0");
  return variables;
}

bool SharesDirectly(int version, int ranks_per_gpu) {
  return version >= VersionCode(2, 30, 3) && ranks_per_gpu <= 2;
}

void ShareGpu(int version, int local_rank, int ranks_per_gpu) {
  for (const auto& [name, value] : SharedGpuVariables(version, local_rank, ranks_per_gpu)) {
    setenv(name.c_str(), value.c_str(), 0);
  }
}

}  // namespace lockstep::comm::nccl
