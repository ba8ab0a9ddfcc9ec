#include "core/agent/progress_probe.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/base/process_stat.h"

namespace lockstep::agent {

void ProgressProbe::Look(pid_t pid, Ticks since) {
  const std::uint64_t faults = StatOf(pid).value_or(ProcessStat()).page_faults;
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
