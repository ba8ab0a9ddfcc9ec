// Places launches by the hosts that they name, and those that name too few by their neighbours. A
// guess is made only where there is no other, and the outcome tells that it is one.
#include "results/compare/machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace lockstep::results::compare {
namespace {

using ByMachine = std::map<std::string, std::vector<const Launch*>>;

struct Hosts {
  std::set<std::string> names;
  bool all = false;  // of every rank
};

Hosts HostsOf(const Launch& launch) {
  Hosts hosts;
  int named = 0, facts = 0;
  for (const auto& [fact, value] : launch.facts) {
    if (!fact.starts_with("ranks/") || !fact.ends_with("/host")) continue;
    ++facts;
    if (value.empty()) continue;
    ++named;
    hosts.names.insert(value);
  }
  hosts.all = named > 0 && named >= (launch.planned.known ? launch.planned.ranks : facts);
  return hosts;
}

// One that should have times, and has none.
bool FailedBenchmark(const Launch& launch) {
  const bool benchmark =
      launch.planned.known || std::ranges::count(launch.cases, false, &CaseFigures::is_trial) > 0;
  return benchmark && launch.verdict != verdict::Verdict::kPass && !HasTime(launch);
}

template <typename Holds>
ByMachine MachinesWith(const ByMachine& all, const Holds& holds) {
  ByMachine some;
  for (const auto& [machine, launches] : all) {
    if (std::ranges::any_of(launches, holds)) some[machine] = launches;
  }
  return some;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return folder.empty() || path.starts_with(folder + "/");
}

ByMachine NearestOf(const Launch& launch, const ByMachine& all) {
  std::string folder = launch.path;
  while (true) {
    const std::size_t slash = folder.rfind('/');
    folder.resize(slash == std::string::npos ? 0 : slash);
    ByMachine near =
        MachinesWith(all, [&](const Launch* other) { return IsBelow(other->path, folder); });
    if (!near.empty() || folder.empty()) return near;
  }
}

bool SamePlan(const Launch& a, const Launch& b) {
  return a.program == b.program && FactOf(a, "plan") == FactOf(b, "plan");
}

ByMachine CandidatesOf(const Launch& launch, const ByMachine& all) {
  const std::set<std::string> named = HostsOf(launch).names;
  const ByMachine possible = MachinesWith(all, [&](const Launch* other) {
    return std::ranges::includes(HostsOf(*other).names, named);
  });
  ByMachine near = NearestOf(launch, possible);
  if (near.size() < 2) return near;
  ByMachine same =
      MachinesWith(near, [&](const Launch* other) { return SamePlan(*other, launch); });
  return same.empty() ? near : same;
}

// Whether it may be the newest launch of its plan on a machine.
bool MayBeNewest(const Launch& launch, const ByMachine& candidates) {
  const ByMachine newer = MachinesWith(candidates, [&](const Launch* other) {
    return SamePlan(*other, launch) && other->started_at > launch.started_at;
  });
  return candidates.empty() || newer.size() < candidates.size();
}

Launch Assumed(Launch launch) {
  const std::string why = " (the file does not name its hosts; its neighbours are of this machine)";
  launch.outcome += why;
  for (CaseFigures& one : launch.cases) {
    one.outcome = (one.outcome == "pass" ? "not measured" : one.outcome) + why;
  }
  return launch;
}

std::string TextOf(const Launch& launch) {
  return fmt::format("{} {}: {}", launch.started_at, launch.program, launch.outcome);
}

std::string UnplacedText(const Launch& launch, const ByMachine& candidates) {
  std::vector<std::string> names;
  for (const auto& [machine, launches] : candidates) names.push_back(machine);
  return fmt::format("{}; the file does not name its hosts{}{}", TextOf(launch),
                     names.empty() ? "" : "; it may be of ", fmt::join(names, ", "));
}

}  // namespace

Machines FindMachines(std::span<const Launch> launches) {
  Machines machines;
  std::vector<const Launch*> open;
  for (const Launch& launch : launches) {
    const Hosts hosts = HostsOf(launch);
    if (!hosts.all && FailedBenchmark(launch)) {
      open.push_back(&launch);
    } else {
      machines
          .launches[hosts.names.empty() ? "unknown"
                                        : fmt::format("{}", fmt::join(hosts.names, "+"))]
          .push_back(&launch);
    }
  }
  const ByMachine known = machines.launches;
  for (const Launch* launch : open) {
    const ByMachine candidates = CandidatesOf(*launch, known);
    if (candidates.size() == 1) {
      machines.assumed.push_back(Assumed(*launch));
      machines.launches[candidates.begin()->first].push_back(&machines.assumed.back());
    } else if (MayBeNewest(*launch, candidates)) {
      machines.failures.push_back(UnplacedText(*launch, candidates));
    }
  }
  for (const auto& [machine, own] : machines.launches) {
    if (std::ranges::any_of(own, [](const Launch* one) { return HasTime(*one); })) continue;
    const auto newest = std::ranges::max_element(own, {}, &Launch::started_at);
    if (!FailedBenchmark(**newest)) continue;
    machines.failures.push_back(
        fmt::format("{} never had a time; the newest launch: {}", machine, TextOf(**newest)));
  }
  return machines;
}

}  // namespace lockstep::results::compare
