// Every launcher names rank and size in its own variables. The first family whose variables are all
// there counts; without any, this process is a launch of one rank. torchrun goes first where it was
// started by another launcher, whose variables it passes on.
#include "core/control/context.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/process_stat.h"
#include "core/control/ancestors.h"
#include "core/control/pytorch.h"

namespace lockstep::control {
namespace {

Result<int> Number(const char* name, int least) {
  return VariableNumber(name, least, kMostRanks,
                        "start this program with the launcher (mpirun -np N …)");
}

struct Variables {
  const char* launcher;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

// Open MPI: ompi v4.1 orte/mca/schizo/ompi. MPICH's Hydra and Intel MPI: PMI_* and MPI_LOCAL*.
// Cray PMI: PMI_LOCAL_*. In order of precedence: mpirun inside a Slurm job sets both its own.
constexpr Variables kLaunchers[] = {
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"},
};

// What launchers set that are not understood: their ranks would each run alone, and say PASS.
constexpr std::pair<const char*, const char*> kUnknownLaunchers[] = {
    {"FLUX_TASK_RANK", "Flux"},
    {"PALS_RANKID", "PALS"},
    {"ALPS_APP_PE", "ALPS's aprun"},
    {"JSM_NAMESPACE_RANK", "IBM's jsrun"},
    {"MV2_COMM_WORLD_RANK", "MVAPICH2's mpirun_rsh"},
    {"PMIX_RANK", "a launcher that speaks PMIx"},
    {"PMI_RANK", "a launcher that speaks PMI"},
};

// srun gives these numbers to the shell of salloc and to a batch script (slurm.h:
// SLURM_INTERACTIVE_STEP, SLURM_BATCH_SCRIPT), which are no ranks of a launch.
constexpr std::string_view kSlurmScripts[] = {"4294967290", "4294967291"};

bool IsTaskOfSrun() {
  if (!std::getenv("SLURM_PROCID") || !std::getenv("SLURM_STEP_NUM_TASKS")) return false;
  const std::string step = VariableText("SLURM_STEP_ID");
  return step != kSlurmScripts[0] && step != kSlurmScripts[1];
}

// Of MPICH's Hydra, which names no job: its proxy of this host, at the other end of a socket pair
// that every rank inherits, whatever stands between the proxy and us.
std::string HydraJob() {
  int fd = -1;
  const std::string text = VariableText("PMI_FD");
  std::from_chars(text.data(), text.data() + text.size(), fd);
  ucred proxy{};
  socklen_t length = sizeof proxy;
  if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &proxy, &length) != 0) return "";
  return proxy.pid > 0 ? fmt::format("hydra-{}", proxy.pid) : "";
}

// The entry of node `node` in Slurm's "2(x3),1": tasks of each node, with repetition.
std::optional<int> TasksOfNode(std::string_view list, int node) {
  while (!list.empty()) {
    int tasks = 0, times = 1;
    const char* const last = list.data() + list.size();
    auto [at, error] = std::from_chars(list.data(), last, tasks);
    if (error != std::errc()) return std::nullopt;
    if (last - at >= 2 && at[0] == '(' && at[1] == 'x') {
      const auto [close, times_error] = std::from_chars(at + 2, last, times);
      if (times_error != std::errc() || close == last || *close != ')') return std::nullopt;
      at = close + 1;
    }
    if (node < times) return tasks;
    node -= times;
    if (at == last || *at != ',') return std::nullopt;
    list = std::string_view(at + 1, static_cast<std::size_t>(last - at - 1));
  }
  return std::nullopt;
}

// "@58943", of PMIX_SERVER_URI…="1590165504.0;tcp4://127.0.0.1:58943". Open MPI numbers a job after
// mpirun's process, and containers on one network count their processes each for itself: the port
// of this host's server is nobody else's.
std::string ServerPort() {
  for (const char* name : {"PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2"}) {
    const std::string uri = VariableText(name);
    const std::size_t colon = uri.rfind(':');
    if (colon != std::string::npos) return "@" + uri.substr(colon + 1);
  }
  return "";
}

// Source: srun(1), "output environment variables". SLURM_STEP_* is set by srun only, so a program
// started directly from a batch script is not taken for one of many ranks.
Result<LaunchContext> FromSlurm() {
  LaunchContext context;
  context.launcher = "slurm";
  LOCKSTEP_ASSIGN_OR_RETURN(context.rank, Number("SLURM_PROCID", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(context.size, Number("SLURM_STEP_NUM_TASKS", 1));
  LOCKSTEP_ASSIGN_OR_RETURN(context.local_rank, Number("SLURM_LOCALID", 0));
  LOCKSTEP_ASSIGN_OR_RETURN(const int node, Number("SLURM_NODEID", 0));
  const std::string list = VariableText("SLURM_STEP_TASKS_PER_NODE");
  const std::optional<int> tasks = TasksOfNode(list, node);
  if (!tasks) {
    return InvalidInput(
        "SLURM_STEP_TASKS_PER_NODE='{}' in the environment does not say how many tasks node {} "
        "has; start with srun",
        list, node);
  }
  context.local_size = *tasks;
  context.job = VariableText("SLURM_JOB_ID") + "." + VariableText("SLURM_STEP_ID");
  context.settings =
      SettingsOf({"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID"});
  return context;
}

Result<LaunchContext> FromVariables(const Variables& names) {
  LaunchContext context;
  context.launcher = names.launcher;
  LOCKSTEP_ASSIGN_OR_RETURN(context.rank, Number(names.rank, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(context.size, Number(names.size, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(context.local_rank, Number(names.local_rank, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(context.local_size, Number(names.local_size, 1));
  context.settings = SettingsOf({names.rank, names.size, names.local_rank, names.local_size,
                                 "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  // PMIx names the job; mpirun gives its ranks the number as well.
  context.job = VariableText("PMIX_NAMESPACE");
  if (context.job.empty()) context.job = VariableText("OMPI_MCA_ess_base_jobid");
  if (!context.job.empty()) context.job += ServerPort();
  if (context.job.empty()) context.job = HydraJob();
  return context;
}

Result<LaunchContext> Checked(Result<LaunchContext> said) {
  LOCKSTEP_ASSIGN_OR_RETURN(const LaunchContext context, std::move(said));
  if (context.rank < context.size && context.local_rank < context.local_size &&
      context.local_size <= context.size) {
    return context;
  }
  return InvalidInput(
      "the environment of launcher '{}' says rank {} of {}, local rank {} of {}, which cannot be; "
      "unset stale variables or start with the launcher",
      context.launcher, context.rank, context.size, context.local_rank, context.local_size);
}

}  // namespace

Result<LaunchContext> DetectLaunch() {
  if (IsRankOfTorchrun()) return FromPyTorch();
  for (const Variables& names : kLaunchers) {
    if (!std::getenv(names.rank) || !std::getenv(names.local_size)) continue;
    return Checked(FromVariables(names));
  }
  if (IsTaskOfSrun()) return Checked(FromSlurm());
  for (const auto& [variable, launcher] : kUnknownLaunchers) {
    if (!std::getenv(variable)) continue;
    return InvalidInput(
        "{}='{}' says that {} started this process, but not how many ranks there are and how many "
        "on this host; start with Open MPI's mpirun, MPICH's mpiexec, Slurm's srun or torchrun, or "
        "unset {}",
        variable, VariableText(variable), launcher, variable);
  }
  // Last of all: a shell may have them of an earlier launch, or for its scripts.
  if (HasPyTorchVariables()) return FromPyTorch();
  LaunchContext context;
  context.launcher = "none";
  return context;
}

Result<int> VariableNumber(const char* name, int least, int most, const char* remedy) {
  const std::string text = VariableText(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || value < least ||
      value > most) {
    return InvalidInput("{}='{}' in the environment is not a number from {} to {}; {}", name, text,
                        least, most, remedy);
  }
  return value;
}

}  // namespace lockstep::control
