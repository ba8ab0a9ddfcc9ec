#include "results/compare/nights.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::results::compare {

std::string MachineOf(const Launch& launch) {
  std::set<std::string> hosts;
  for (const auto& [fact, value] : launch.facts) {
    if (fact.starts_with("ranks/") && fact.ends_with("/host")) hosts.insert(value);
  }
  return hosts.empty() ? "unknown" : fmt::format("{}", fmt::join(hosts, "+"));
}

std::optional<double> SecondsOf(const std::string& started_at) {
  tm time{};
  const char* end = strptime(started_at.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return static_cast<double>(timegm(&time));
}

std::map<std::string, std::vector<LaunchesOfNight>> NightsByMachine(
    std::span<const Launch> launches, double gap_seconds) {
  std::map<std::string, std::vector<std::pair<double, const Launch*>>> by_machine;
  for (const Launch& launch : launches) {
    const std::optional<double> seconds = SecondsOf(launch.started_at);
    if (seconds) by_machine[MachineOf(launch)].emplace_back(*seconds, &launch);
  }
  std::map<std::string, std::vector<LaunchesOfNight>> nights;
  for (auto& [machine, timed] : by_machine) {
    std::stable_sort(timed.begin(), timed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<LaunchesOfNight>& own = nights[machine];
    for (std::size_t i = 0; i < timed.size(); ++i) {
      if (i == 0 || timed[i].first - timed[i - 1].first > gap_seconds) own.emplace_back();
      own.back().push_back(timed[i].second);
    }
  }
  return nights;
}

}  // namespace lockstep::results::compare
