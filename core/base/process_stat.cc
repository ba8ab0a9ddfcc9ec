// What /proc and the environment say, as text that is taken apart here.
#include "core/base/process_stat.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/base/file_text.h"

namespace lockstep {

const std::string& HostName() {
  static const std::string host = [] {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return std::string(name);
  }();
  return host;
}

std::string VariableText(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::vector<int> NumbersIn(const std::string& folder) {
  std::vector<int> numbers;
  for (const std::filesystem::path& entry : EntriesOf(folder)) {
    const std::string name = entry.filename();
    if ('0' <= name[0] && name[0] <= '9') numbers.push_back(std::atoi(name.c_str()));
  }
  return numbers;
}

bool HasMapped(pid_t pid, const std::string& name) {
  return TextOf("/proc/" + std::to_string(pid) + "/maps").find(name) != std::string::npos;
}

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  // Larger than any kernel's NR_CPUS (8192); a set that is too small is refused with EINVAL.
  constexpr int kMostCpus = 8192;
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(kMostCpus),
                                                       [](cpu_set_t* s) { CPU_FREE(s); });
  const std::size_t bytes = CPU_ALLOC_SIZE(kMostCpus);
  CPU_ZERO_S(bytes, set.get());
  if (sched_getaffinity(0, bytes, set.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
  }
  return cpus;
}

std::optional<std::int64_t> MemAvailableBytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name, unit;
  for (std::int64_t kib = 0; meminfo >> name >> kib; std::getline(meminfo, unit)) {
    if (name == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

std::optional<ProcessStat> ReadStat(const std::string& text) {
  const std::size_t end = text.rfind(')');  // a name may hold anything
  if (end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  unsigned long minor = 0, major = 0, started = 0;
  // From field 3 of proc(5) to field 39, a line for every ten.
  const int read = std::sscanf(text.c_str() + end + 1,
                               " %c %d %*s %*s %*s %*s %u %lu"
                               " %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s"
                               " %*s %lu %*s %*s %*s %*s %*s %*s %*s %*s"
                               " %*s %*s %*s %*s %*s %*s %*s %*s %d",
                               &stat.state, &stat.parent, &stat.flags, &minor, &major, &started,
                               &stat.processor);
  if (read < 7) return std::nullopt;
  stat.page_faults = minor + major;
  stat.started = started;
  return stat;
}

std::optional<ProcessStat> StatOf(pid_t pid) {
  return ReadStat(TextOf("/proc/" + std::to_string(pid) + "/stat"));
}

}  // namespace lockstep
