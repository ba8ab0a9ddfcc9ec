#include "core/comm/nccl/choices.h"

#include <cstdlib>

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

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Status ExportNcclChoices(const NcclChoices& choices) {
  if (choices.ranks_per_gpu < 1 || choices.ranks_per_gpu > kMostRanksPerGpu) {
    return InvalidInput(fmt::format("--ranks-per-gpu={}: choose from 1 to {}",
                                    choices.ranks_per_gpu, kMostRanksPerGpu));
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
  choices.library = Variable(kLibrary);
  const int ranks = std::atoi(Variable(kRanksPerGpu).c_str());
  if (ranks >= 1 && ranks <= kMostRanksPerGpu) choices.ranks_per_gpu = ranks;
  choices.registers = Variable(kRegister) == "1";
  choices.graphs = Variable(kGraph) == "1";
  choices.marks = Variable(kMarks) != "0";
  return choices;
}

}  // namespace lockstep::comm::nccl
