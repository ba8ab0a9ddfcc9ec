// torchrun says how many ranks there are, here and in all. Who sets variables by hand mostly leaves
// out LOCAL_WORLD_SIZE. Then ranks are taken to be on several hosts, which works on one host, too.
#include "core/control/pytorch.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "core/control/ancestors.h"

namespace lockstep::control {
namespace {

constexpr int kMostPort = 65535;
constexpr int kMasterPort = 29500;  // PyTorch's own default
constexpr const char* kPyTorchRemedy =
    "start with torchrun, or set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and "
    "MASTER_PORT";
// Each is set for every rank of its launcher, and inherited by a torchrun that it starts.
constexpr const char* kOfOtherLaunchers[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
                                             "PMIX_RANK"};

bool IsLoopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// `missing` where it is not set.
Result<int> NumberOr(const char* name, int least, int most, int missing) {
  if (VariableText(name).empty()) return missing;
  return VariableNumber(name, least, most, kPyTorchRemedy);
}

}  // namespace

bool HasPyTorchVariables() {
  return !VariableText("RANK").empty() && !VariableText("WORLD_SIZE").empty() &&
         !VariableText("MASTER_ADDR").empty();
}

bool IsRankOfTorchrun() {
  constexpr const char* kSetByTorchrun = "TORCHELASTIC_RUN_ID";
  if (VariableText(kSetByTorchrun).empty() || !HasPyTorchVariables()) return false;
  return std::ranges::all_of(kOfOtherLaunchers, [](const char* other) {
    return VariableText(other).empty() || IsInner(kSetByTorchrun, other);
  });
}

Result<LaunchContext> FromPyTorch() {
  LaunchContext context;
  context.launcher = VariableText("TORCHELASTIC_RUN_ID").empty() ? kByHand : kTorchrun;
  LOCKSTEP_ASSIGN_OR_RETURN(context.size,
                            VariableNumber("WORLD_SIZE", 1, kMostRanks, kPyTorchRemedy));
  LOCKSTEP_ASSIGN_OR_RETURN(context.rank,
                            VariableNumber("RANK", 0, context.size - 1, kPyTorchRemedy));
  const std::string master = VariableText("MASTER_ADDR");
  LOCKSTEP_ASSIGN_OR_RETURN(context.local_size, NumberOr("LOCAL_WORLD_SIZE", 1, context.size,
                                                         IsLoopback(master) ? context.size : 1));
  const bool counted = context.single_host() || !VariableText("LOCAL_WORLD_SIZE").empty();
  LOCKSTEP_ASSIGN_OR_RETURN(
      context.local_rank,
      NumberOr("LOCAL_RANK", 0, (counted ? context.local_size : context.size) - 1,
               context.single_host() ? context.rank : 0));
  context.settings = SettingsOf({"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT",
                                 "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"});
  // Ranks that torchrun starts again must not meet those of the time before.
  context.job = fmt::format("{}:{}.{}", master, VariableText("MASTER_PORT"),
                            VariableText("TORCHELASTIC_RESTART_COUNT"));
  return context;
}

bool HasMasterAddress(const LaunchContext& context) {
  return context.launcher == kTorchrun || context.launcher == kByHand;
}

Result<std::uint16_t> PortAboveMaster(int above) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int port, NumberOr("MASTER_PORT", 1, kMostPort, kMasterPort));
  return static_cast<std::uint16_t>(port + above <= kMostPort ? port + above : port - above);
}

}  // namespace lockstep::control
