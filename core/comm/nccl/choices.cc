#include "core/comm/nccl/choices.h"

#include <cstdlib>

#include "core/base/process_stat.h"
#include "fmt/format.h"

namespace lockstep::comm::nccl {
namespace {

constexpr char kLibrary[] = "LOCKSTEP_NCCL_LIBRARY";
constexpr char kRanksPerGpu[] = "LOCKSTEP_RANKS_PER_GPU";
constexpr char kRegister[] = "LOCKSTEP_NCCL_REGISTER";
constexpr char kGraph[] = "LOCKSTEP_CUDA_GRAPH";
constexpr char kMarks[] = "LOCKSTEP_DEVICE_MARKS";
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

NcclChoices NcclChoicesFromEnvironment() {
  NcclChoices choices;
  choices.library = VariableText(kLibrary);
  const int ranks = std::atoi(VariableText(kRanksPerGpu).c_str());
  if (ranks >= 1 && ranks <= kMostRanksPerGpu) choices.ranks_per_gpu = ranks;
  choices.registers = VariableText(kRegister) == "1";
  choices.graphs = VariableText(kGraph) == "1";
  choices.marks = VariableText(kMarks) != "0";
  return choices;
}

}  // namespace lockstep::comm::nccl
