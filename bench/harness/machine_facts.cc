#include "bench/harness/machine_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/units.h"

namespace lockstep {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

// The value of the first "key : value" line of a /proc file; "unknown" when it has none.
std::string ProcValue(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "unknown";
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

std::string LimitText(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_cur);
}

std::string SharedMemoryText() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0) return "none";
  return FormatBytes(static_cast<std::int64_t>(status.f_bavail * status.f_frsize));
}

void AddHost(Facts& facts) {
  utsname system{};
  uname(&system);
  facts.emplace_back("host/cpu_model", ProcValue("/proc/cpuinfo", "model name"));
  facts.emplace_back("host/cpus_online", fmt::format("{}", sysconf(_SC_NPROCESSORS_ONLN)));
  facts.emplace_back("host/memory_total", ProcValue("/proc/meminfo", "MemTotal"));
  facts.emplace_back("host/memory_available", ProcValue("/proc/meminfo", "MemAvailable"));
  facts.emplace_back("host/kernel", fmt::format("{} {}", system.sysname, system.release));
  facts.emplace_back("host/kernel_build", system.version);
  facts.emplace_back("host/architecture", system.machine);
  facts.emplace_back("host/cpu_governor",
                     FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  facts.emplace_back("host/transparent_hugepage",
                     FirstLine("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.emplace_back("host/tick_source", TickSource());
  facts.emplace_back("limits/memlock_bytes", LimitText(RLIMIT_MEMLOCK));
  facts.emplace_back("limits/open_files", LimitText(RLIMIT_NOFILE));
  facts.emplace_back("limits/processes", LimitText(RLIMIT_NPROC));
  facts.emplace_back("limits/shm_available", SharedMemoryText());
}

void AddRanks(const std::vector<AgentInfo>& agents, Facts& facts) {
  for (const AgentInfo& agent : agents) {
    const std::string group = fmt::format("ranks/{}", agent.rank);
    const bool same_kernel = agent.boot_id == agents.front().boot_id;
    facts.emplace_back(group + "/host", agent.host);
    facts.emplace_back(group + "/boot_id", agent.boot_id);
    facts.emplace_back(group + "/cpus", fmt::format("{}", fmt::join(agent.cpus, ",")));
    // One kernel's invariant counter is the same on all of its processors; between hosts the
    // offset is not estimated, and only durations of those ranks compare.
    facts.emplace_back(group + "/clock_offset_ns", same_kernel ? "0" : "not estimated");
    facts.emplace_back(group + "/clock_offset_error_ns", same_kernel ? "0" : "unknown");
  }
}

// Settings that change what a collective does.
void AddVariables(Facts& facts) {
  static constexpr std::string_view kPrefixes[] = {
      "OMPI_MCA_", "PMIX_MCA_", "UCX_",   "NCCL_",  "GLOO_", "CUDA_",    "HDF5_",
      "LOCKSTEP_", "OMP_",      "MPICH_", "I_MPI_", "FI_",   "SLURM_JOB"};
  static constexpr std::string_view kNames[] = {"LD_PRELOAD", "LD_LIBRARY_PATH",
                                                "MALLOC_ARENA_MAX"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    bool wanted = false;
    for (const std::string_view prefix : kPrefixes) wanted = wanted || name.starts_with(prefix);
    for (const std::string_view exact : kNames) wanted = wanted || name == exact;
    if (!wanted) continue;
    facts.emplace_back(fmt::format("variables/{}", name), std::string(variable.substr(equals + 1)));
  }
}

void AddWorkerFacts(const std::string& worker_facts, Facts& facts) {
  const auto json = nlohmann::ordered_json::parse(worker_facts, nullptr, false);
  if (!json.is_object()) return;  // no worker got so far
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) facts.emplace_back("software/" + key, value.get<std::string>());
  }
}

}  // namespace

Facts MachineFacts(const std::vector<AgentInfo>& agents, const LaunchContext& context,
                   const std::string& worker_facts) {
  Facts facts;
  AddHost(facts);
  AddRanks(agents, facts);
  facts.emplace_back("launch/launcher", context.launcher);
  facts.emplace_back("launch/ranks", fmt::format("{}", context.size));
  facts.emplace_back("software/compiler", "g++ " __VERSION__);
  AddWorkerFacts(worker_facts, facts);
  AddVariables(facts);
  return facts;
}

}  // namespace lockstep
