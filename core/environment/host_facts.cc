// Reads /proc, /sys, limits and environment variables of this process. It starts nothing and asks
// no server, because an agent does this before every run.
#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/clock.h"
#include "core/base/file_text.h"
#include "core/base/units.h"
#include "core/environment/facts.h"

namespace lockstep::environment {
namespace {

namespace fs = std::filesystem;

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

std::string LimitText(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{}", limit.rlim_cur);
}

void AddSharedMemory(Facts& facts) {
  struct statvfs status {};
  const bool there = statvfs("/dev/shm", &status) == 0;
  const auto bytes = [&](fsblkcnt_t blocks) {
    return there ? static_cast<std::int64_t>(blocks * status.f_frsize) : 0;
  };
  facts.emplace_back("limits/shm_available", there ? FormatBytes(bytes(status.f_bavail)) : "none");
  facts.emplace_back("limits/shm_bytes", fmt::format("{}", bytes(status.f_blocks)));
  facts.emplace_back("limits/shm_available_bytes", fmt::format("{}", bytes(status.f_bavail)));
}

// Control groups, version 2: of the root of what this process sees.
void AddControlGroup(Facts& facts) {
  for (const char* what : {"cpu", "memory"}) {
    const std::string most = FirstLine(fmt::format("/sys/fs/cgroup/{}.max", what));
    if (most != "unknown") facts.emplace_back(fmt::format("limits/cgroup_{}_max", what), most);
  }
}

std::string ContainerText() {
  std::error_code error;
  if (fs::exists("/.dockerenv", error)) return "docker";
  if (fs::exists("/run/.containerenv", error)) return "podman";
  return FirstLine("/proc/1/comm") == "systemd" ? "none" : "perhaps (no systemd)";
}

int UsableProcessors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

}  // namespace

Facts HostFacts() {
  Facts facts;
  utsname system{};
  uname(&system);
  facts.emplace_back("host/cpu_model", ProcValue("/proc/cpuinfo", "model name"));
  facts.emplace_back("host/cpus_online", fmt::format("{}", sysconf(_SC_NPROCESSORS_ONLN)));
  facts.emplace_back("host/cpus_usable", fmt::format("{}", UsableProcessors()));
  facts.emplace_back("host/memory_total", ProcValue("/proc/meminfo", "MemTotal"));
  facts.emplace_back("host/memory_available", ProcValue("/proc/meminfo", "MemAvailable"));
  facts.emplace_back("host/kernel", fmt::format("{} {}", system.sysname, system.release));
  facts.emplace_back("host/kernel_build", system.version);
  facts.emplace_back("host/architecture", system.machine);
  facts.emplace_back("host/container", ContainerText());
  facts.emplace_back(
      "host/virtual_machine",
      ProcValue("/proc/cpuinfo", "flags").find(" hypervisor") == std::string::npos ? "no" : "yes");
  facts.emplace_back("host/cpu_governor",
                     FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  facts.emplace_back("host/transparent_hugepage",
                     FirstLine("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.emplace_back("host/tick_source", TickSource());
  facts.emplace_back("limits/memlock_bytes", LimitText(RLIMIT_MEMLOCK));
  facts.emplace_back("limits/open_files", LimitText(RLIMIT_NOFILE));
  facts.emplace_back("limits/processes", LimitText(RLIMIT_NPROC));
  const std::string driver = FirstLine("/proc/driver/nvidia/version");
  facts.emplace_back("gpu/kernel_module", driver == "unknown" ? "not loaded" : driver);
  AddSharedMemory(facts);
  AddControlGroup(facts);
  return facts;
}

Facts VariableFacts() {
  static constexpr std::string_view kPrefixes[] = {
      "OMPI_MCA_", "PMIX_MCA_", "UCX_",      "NCCL_",          "TORCH_FR_",  "TORCH_NCCL_",
      "GLOO_",     "CUDA_",     "HDF5_",     "OMP_",           "MPICH_",     "I_MPI_",
      "LOCKSTEP_", "FI_",       "SLURM_JOB", "SLURM_MPI_TYPE", "MPIR_CVAR_", "HYDRA_"};
  static constexpr std::string_view kNames[] = {"LD_PRELOAD", "LD_LIBRARY_PATH",
                                                "MALLOC_ARENA_MAX"};
  Facts facts;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = variable.substr(0, equals);
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    const bool wanted = std::ranges::any_of(kPrefixes, begins) ||
                        std::ranges::find(kNames, name) != std::end(kNames);
    if (!wanted) continue;
    facts.emplace_back(fmt::format("variables/{}", name), std::string(variable.substr(equals + 1)));
  }
  return facts;
}

const std::string* Find(const Facts& facts, std::string_view path) {
  const auto found = std::ranges::find(facts, path, &Facts::value_type::first);
  return found == facts.end() ? nullptr : &found->second;
}

}  // namespace lockstep::environment
