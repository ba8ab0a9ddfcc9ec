// The environment holds what is chosen; two ranks of a GPU are talked into it by NCCL's own
// variables.
#include "core/comm/nccl/choices.h"

#include <cstdlib>

#include "core/base/process_stat.h"
#include "core/comm/nccl/abi.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

constexpr char kLibrary[] = "LOCKSTEP_NCCL_LIBRARY";
constexpr char kRanksPerGpu[] = "LOCKSTEP_RANKS_PER_GPU";
constexpr char kRegister[] = "LOCKSTEP_NCCL_REGISTER";
constexpr char kGraph[] = "LOCKSTEP_CUDA_GRAPH";
constexpr char kMarks[] = "LOCKSTEP_DEVICE_MARKS";
constexpr char kVisible[] = "CUDA_VISIBLE_DEVICES";
constexpr int kMostRanksPerGpu = 64;

// An empty value: the variable is not there.
void Set(const char* name, const std::string& value) {
  value.empty() ? unsetenv(name) : setenv(name, value.c_str(), 1);
}

}  // namespace

Status ExportNcclChoices(const NcclChoices& choices) {
  if (choices.ranks_per_gpu < 1 || choices.ranks_per_gpu > kMostRanksPerGpu) {
    return InvalidInput("--ranks-per-gpu={}: choose from 1 to {}", choices.ranks_per_gpu,
                        kMostRanksPerGpu);
  }
  Set(kLibrary, choices.library);
  Set(kRanksPerGpu, choices.ranks_per_gpu > 1 ? fmt::format("{}", choices.ranks_per_gpu) : "");
  Set(kRegister, choices.registers ? "1" : "");
  Set(kGraph, choices.graphs ? "1" : "");
  Set(kMarks, choices.marks ? "" : "0");
  return OkStatus();
}

NcclChoices NcclChoicesFromEnvironment(bool marks) {
  NcclChoices choices;
  choices.library = VariableText(kLibrary);
  const int ranks = std::atoi(VariableText(kRanksPerGpu).c_str());
  if (ranks >= 1 && ranks <= kMostRanksPerGpu) choices.ranks_per_gpu = ranks;
  choices.registers = VariableText(kRegister) == "1";
  choices.graphs = VariableText(kGraph) == "1";
  const std::string said = VariableText(kMarks);
  choices.marks = marks ? said != "0" : said == "1";
  return choices;
}

int DeviceOf(int local_rank, int ranks_per_gpu) {
  const std::string visible = VariableText(kVisible);
  const bool given_one = !visible.empty() && visible.find(',') == std::string::npos;
  return given_one ? 0 : local_rank / ranks_per_gpu;
}

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
