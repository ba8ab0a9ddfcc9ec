#include "core/agent/progress_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace lockstep::agent {

void ProgressProbe::Look(pid_t pid, Ticks since) {
  const std::int64_t faults = PageFaultsOf(pid);
  if (faults > page_faults_) newest_page_fault_ = NowTicks();
  page_faults_ = faults;
  Delays delays = DelaysOf(pid);
  if (since != since_) {
    since_ = since;
    at_first_ = std::move(delays);
    run_delay_ns_ = 0;
    return;
  }
  for (const auto& [thread, delay] : delays) {
    const auto first = at_first_.find(thread);
    if (first == at_first_.end()) continue;
    run_delay_ns_ = std::max(run_delay_ns_, static_cast<double>(delay - first->second));
  }
}

std::int64_t ProgressProbe::PageFaultsOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(file, stat);
  const auto close = stat.rfind(')');  // the name before it may hold anything
  if (close == std::string::npos) return 0;
  long long minor = 0, major = 0;
  const char* const fields = stat.c_str() + close + 1;
  const int read =
      std::sscanf(fields, " %*c %*d %*d %*d %*d %*d %*u %lld %*u %lld", &minor, &major);
  return read == 2 ? minor + major : 0;
}

ProgressProbe::Delays ProgressProbe::DelaysOf(pid_t pid) {
  Delays delays;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream file(entry.path() / "schedstat");
    std::int64_t ran = 0, waited = 0;
    if (file >> ran >> waited) delays[std::atoi(entry.path().filename().c_str())] = waited;
  }
  return delays;
}

}  // namespace lockstep::agent
