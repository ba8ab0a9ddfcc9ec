// Finds scenarios by name or file, plans their faults, and leaves out what this launch cannot run,
// with the reason.
#include "stress/cases/catalogue.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/file_text.h"
#include "core/base/nearest.h"
#include "core/base/wrap.h"
#include "stress/cases/plan_faults.h"
#include "stress/scenario/script.h"

namespace lockstep::stress::cases {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUserVariable = "LOCKSTEP_SCENARIOS";

std::vector<fs::path> Candidates() {
  if (const char* own = std::getenv(kUserVariable)) return {own};
  return DataFolders("scenarios", "stress/scenarios");
}

Result<fs::path> CatalogueDirectory() {
  std::error_code error;
  for (const fs::path& candidate : Candidates()) {
    if (fs::is_directory(candidate, error)) return candidate;
  }
  return InvalidInput(
      "no catalogue of scenarios was found; set {} to a directory of them, or give the path of a "
      "scenario",
      kUserVariable);
}

struct CatalogueEntry {
  std::string name;  // "uneven_inputs/case4"
  std::string path;
};

// By name.
Result<std::vector<CatalogueEntry>> ListCatalogue() {
  LOCKSTEP_ASSIGN_OR_RETURN(const fs::path directory, CatalogueDirectory());
  std::vector<CatalogueEntry> entries;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".toml") continue;
    const fs::path relative = entry->path().lexically_relative(directory);
    entries.push_back({(relative.parent_path() / relative.stem()).string(), entry->path()});
  }
  std::ranges::sort(entries, {}, &CatalogueEntry::name);
  return entries;
}

bool IsPath(const std::string& pattern) { return pattern.ends_with(".toml"); }

std::string NearestEntry(const std::string& pattern, const std::vector<CatalogueEntry>& entries) {
  std::vector<std::string_view> names;
  for (const CatalogueEntry& entry : entries) names.push_back(entry.name);
  return NearestHint(pattern, names);
}

Result<std::vector<std::string>> PathsOf(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  std::optional<std::vector<CatalogueEntry>> entries;
  for (const std::string& pattern : patterns) {
    if (IsPath(pattern)) {
      paths.push_back(pattern);
      continue;
    }
    if (!entries) {
      LOCKSTEP_ASSIGN_OR_RETURN(entries, ListCatalogue());
    }
    const std::size_t before = paths.size();
    for (const CatalogueEntry& entry : *entries) {
      if (fnmatch(pattern.c_str(), entry.name.c_str(), 0) == 0) paths.push_back(entry.path);
    }
    if (paths.size() > before) continue;
    return InvalidInput("--scenario: '{}' names nothing; {}see lockstep-stress --list", pattern,
                        NearestEntry(pattern, *entries));
  }
  return paths;
}

bool IsFor(const scenario::Scenario& scenario, int ranks) {
  const std::vector<int>& allowed = scenario.allowed_ranks;
  return allowed.empty() || std::ranges::find(allowed, ranks) != allowed.end();
}

Status AddCases(const std::string& path, std::optional<int> ranks, std::uint64_t seed,
                std::int64_t repeat, Selection& selection) {
  // First as it stands: how many ranks it is for.
  LOCKSTEP_ASSIGN_OR_RETURN(const scenario::Scenario as_written, scenario::LoadScenario(path));
  if (ranks && !IsFor(as_written, *ranks)) {
    selection.skipped.push_back(as_written.name);
    return OkStatus();
  }
  const std::optional<std::string> text = ReadText(path);
  if (!text) return EnvironmentError("'{}' can't be read; check its rights", path);
  LOCKSTEP_ASSIGN_OR_RETURN(const scenario::Scenario scenario,
                            scenario::ParseScenario(*text, path, {.ranks = ranks}));
  for (std::int64_t i = 0; i < repeat; ++i) {
    const std::uint64_t own_seed = seed + static_cast<std::uint64_t>(i);
    StressCase made{scenario, *text, own_seed, PlanFaults(scenario, own_seed), scenario.name};
    if (repeat > 1) made.label += fmt::format(" seed {}", own_seed);
    selection.cases.push_back(std::move(made));
  }
  return OkStatus();
}

bool HasStreams(const scenario::Scenario& scenario) {
  const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload);
  return std::holds_alternative<scenario::StreamRaceProgram>(scenario.workload) ||
         (script != nullptr && scenario::UsesStreams(*script));
}

// Something about how the ranks connect. To die, to stop or to be late is the same afterwards.
bool IsAboutConnecting(const faults::PlannedFault& fault) {
  return fault.moment.kind == faults::FaultMoment::Kind::kInit &&
         (faults::IsOfNetwork(fault.kind) || fault.kind == faults::FaultKind::kFdExhaustion ||
          fault.kind == faults::FaultKind::kMemoryPressure ||
          fault.kind == faults::FaultKind::kEnvironment || fault.kind == faults::FaultKind::kHang);
}

std::string_view WhyNotByMpi(const StressCase& stress_case, bool single_host) {
  const auto any = [&](auto&& is) { return std::ranges::any_of(stress_case.faults, is); };
  if (stress_case.scenario.recovery) {
    return "it cannot abort and rebuild a communicator: the calls for it are those of ULFM "
           "(MPIX_Comm_revoke, MPIX_Comm_shrink), which Open MPI 4.1 lacks";
  }
  if (HasStreams(stress_case.scenario)) {
    return "it needs a stream for collectives, and MPI is called by one thread only here";
  }
  if (any([](const faults::PlannedFault& f) {
        return faults::IsOfLink(f.kind) && !faults::IsOfNetwork(f.kind);
      })) {
    return "MPI's connections do not go through the agents' relay (network/* breaks those between "
           "hosts)";
  }
  if (!single_host && any(IsAboutConnecting)) {
    return "across hosts MPI has connected the ranks before a fault at init can come; start it on "
           "one host";
  }
  return "";
}

// `why_not` of a case; "": it can be shown.
template <typename WhyNot>
Status MoveToUnmet(std::string_view backend, std::string_view remedy, const WhyNot& why_not,
                   Selection& selection) {
  std::erase_if(selection.cases, [&](const StressCase& stress_case) {
    const auto why = why_not(stress_case);
    if (!why.empty()) selection.unmet.push_back(fmt::format("{}: {}", stress_case.label, why));
    return !why.empty();
  });
  if (!selection.cases.empty()) return OkStatus();
  return Unsupported("--backend={}: {}; {}", backend,
                     selection.unmet.empty() ? "nothing to run" : selection.unmet.front(), remedy);
}

}  // namespace

Result<std::string> DescribeCatalogue() {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<CatalogueEntry> entries, ListCatalogue());
  std::string text;
  for (const CatalogueEntry& entry : entries) {
    LOCKSTEP_ASSIGN_OR_RETURN(const scenario::Scenario scenario,
                              scenario::LoadScenario(entry.path));
    const std::string ranks = scenario.allowed_ranks.empty()
                                  ? "any ranks"
                                  : fmt::format("{} ranks", fmt::join(scenario.allowed_ranks, ","));
    text += fmt::format("{:<44} {:<12} {}\n", entry.name, ranks, scenario.description);
  }
  return text;
}

Status LeaveOutUnmet(std::string_view backend, Selection& selection) {
  const auto why = [&](const StressCase& stress_case) -> std::string {
    const std::string& needs = stress_case.scenario.requirement;
    if (needs.empty() || needs == backend || (needs == "cuda" && backend == "nccl")) return "";
    return "needs " + (needs == "cuda" ? "a GPU (--backend=nccl)" : "--backend=" + needs);
  };
  return MoveToUnmet(backend, "choose another scenario or backend", why, selection);
}

Status LeaveOutForMpi(bool single_host, Selection& selection) {
  const auto why = [&](const StressCase& one) { return WhyNotByMpi(one, single_host); };
  return MoveToUnmet("mpi", "use --backend=gloo, or another scenario", why, selection);
}

std::string FormatUnmet(const std::vector<std::string>& unmet) {
  constexpr std::string_view kColon = ": ";
  std::vector<std::pair<std::string, std::string>> lines;  // reason and names
  for (const std::string& one : unmet) {
    const std::size_t colon = one.find(kColon);
    const std::string name = one.substr(0, colon);
    const std::string why = colon == std::string::npos ? "" : one.substr(colon + kColon.size());
    const auto known = std::ranges::find(lines, why, &std::pair<std::string, std::string>::first);
    if (known == lines.end()) {
      lines.emplace_back(why, name);
    } else {
      known->second += ", " + name;
    }
  }
  std::string text;
  for (const auto& [why, names] : lines)
    text += "\n" + Wrap(fmt::format("not run: {}: {}", names, why));
  return text;
}

std::string ProgressText(std::size_t done, std::size_t cases, const StressCase& next) {
  return fmt::format("{} of {} cases done, now {}", done, cases, next.label);
}

bool StaysInLog(std::size_t done, std::size_t cases) {
  return done > 0 && done % std::max<std::size_t>(10, cases / 20) == 0;
}

Result<Selection> SelectCases(const std::vector<std::string>& patterns, std::optional<int> ranks,
                              std::uint64_t seed, std::int64_t repeat) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsOf(patterns));
  Selection selection;
  for (const std::string& path : paths) {
    LOCKSTEP_RETURN_IF_ERROR(AddCases(path, ranks, seed, repeat, selection));
  }
  if (!selection.cases.empty()) return selection;
  return InvalidInput(
      "{} is not for {} ranks; start it with another mpirun -np (see lockstep-stress --list)",
      fmt::join(selection.skipped, ", "), ranks.value_or(0));
}

Status LeaveOut(Selection& selection, const std::function<bool(const StressCase&)>& lacks,
                const std::function<std::string(const StressCase&)>& explain) {
  const auto first = std::ranges::find_if(selection.cases, lacks);
  if (first == selection.cases.end()) return OkStatus();
  const Status error = Unsupported(explain(*first));
  std::erase_if(selection.cases, [&](const StressCase& stress_case) {
    if (!lacks(stress_case)) return false;
    selection.skipped.push_back(stress_case.scenario.name);
    return true;
  });
  return selection.cases.empty() ? error : OkStatus();
}

Status LeaveOutHosts(bool single_host, bool network_faults, Selection& selection) {
  const auto lacks = [&](const StressCase& one) {
    const bool network = std::ranges::any_of(
        one.faults, [](const auto& fault) { return faults::IsOfNetwork(fault.kind); });
    return (single_host && one.scenario.hosts > 1) || (network && !network_faults);
  };
  const std::string_view why = single_host
                                   ? "is about several hosts, and all ranks are on one; start it "
                                     "over several (see scripts/test_hosts)"
                                   : "interferes with the network between these hosts; give "
                                     "--allow-network-faults if it may, or see scripts/test_hosts";
  return LeaveOut(selection, lacks, [&](const StressCase& first) {
    return fmt::format("'{}' {}", first.scenario.name, why);
  });
}

}  // namespace lockstep::stress::cases
