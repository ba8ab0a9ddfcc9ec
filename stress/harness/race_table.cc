// The table below a stress run with races of streams: what was wrong, what cures it, at which cost.
// Costs are told only where they can be measured.
#include "stress/harness/race_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string_view>

#include "core/base/units.h"

namespace lockstep::stress::harness {
namespace {

double Of(const std::map<std::string, double>& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->second;
}

constexpr std::string_view kLaunchBlocking = "CUDA_LAUNCH_BLOCKING=1";

bool HasLaunchBlocking(const cases::StressCase& stress_case) {
  return std::ranges::any_of(stress_case.faults, [](const faults::PlannedFault& fault) {
    return std::ranges::count(fault.variables, kLaunchBlocking) > 0;
  });
}

RaceRow RowOf(const cases::StressCase& stress_case, const scenario::StreamRaceProgram& program,
              const cases::CaseResult& result) {
  RaceRow row;
  row.pattern = scenario::NameOf(program.pattern);
  row.guard = HasLaunchBlocking(stress_case) ? kLaunchBlocking : scenario::NameOf(program.guard);
  for (const auto& report : result.facts.reports) {
    if (!report) continue;
    const auto& figures = report->figures;
    row.rounds = std::max(row.rounds, Of(figures, "rounds"));
    row.round_us = std::max(row.round_us, Of(figures, "round_us"));
    row.overlapped_rounds = std::max(row.overlapped_rounds, Of(figures, "overlapped_rounds"));
    if (Of(figures, "corrupt_rounds") <= row.corrupt_rounds) continue;
    row.corrupt_rounds = Of(figures, "corrupt_rounds");
    row.first_element = Of(figures, "first_element");
  }
  return row;
}

constexpr int kProcessorsOfARank = 3;

struct Share {
  int ranks = 0;
  std::set<std::string> processors;
};

// Guards of the pattern with which no round was corrupt, the cheapest first.
std::vector<const RaceRow*> CuresOf(const std::vector<RaceRow>& rows, const std::string& pattern) {
  std::vector<const RaceRow*> cures;
  for (const RaceRow& row : rows) {
    if (row.pattern == pattern && row.extra_us && row.corrupt_rounds == 0) cures.push_back(&row);
  }
  std::ranges::stable_sort(cures, {}, [](const RaceRow* row) { return *row->extra_us; });
  return cures;
}

double NoiseOf(const std::vector<RaceRow>& rows) {
  double noise_us = 0;
  for (const RaceRow& row : rows) noise_us = std::max(noise_us, -row.extra_us.value_or(0));
  return noise_us;
}

std::string CheapestText(const std::vector<const RaceRow*>& cures, double noise_us,
                         bool times_mean_something) {
  if (cures.size() < 2) return "";
  if (!times_mean_something) {
    return "; which is the cheapest is not told: that takes three processors for each rank";
  }
  const double least = *cures[0]->extra_us;
  if (least < 0 || *cures[1]->extra_us - least <= noise_us) {
    return "; which is the cheapest is not told: the times scatter by more than the cures differ";
  }
  return fmt::format("; the cheapest here is '{}'", cures[0]->guard);
}

std::string FormatHints(const std::vector<RaceRow>& rows, bool times_mean_something) {
  const double noise_us = NoiseOf(rows);
  std::string text;
  for (const RaceRow& row : rows) {
    if (row.guard != "none" || row.corrupt_rounds == 0) continue;
    const std::vector<const RaceRow*> cures = CuresOf(rows, row.pattern);
    if (cures.empty()) continue;
    std::set<std::string> names;
    for (const RaceRow* cure : cures) names.insert(cure->guard);
    text += fmt::format("{}: wrong in {:.0f} % of the rounds; right with {}{}\n", row.pattern,
                        100 * row.corrupt_rounds / row.rounds, fmt::join(names, ", "),
                        CheapestText(cures, noise_us, times_mean_something));
  }
  if (text.empty()) return "";
  return "\n" + text +
         "to find such a race in a program on a GPU: does it vanish with CUDA_LAUNCH_BLOCKING=1? "
         "compute-sanitizer --track-stream-ordered-races=all sees those of memory from "
         "cudaMallocAsync; its --tool=racecheck sees shared memory within a kernel only, and no "
         "race between streams\n";
}

}  // namespace

std::vector<RaceRow> RaceRowsOf(const std::vector<cases::StressCase>& cases,
                                const std::vector<cases::CaseResult>& results) {
  std::vector<RaceRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto* program = std::get_if<scenario::StreamRaceProgram>(&cases[i].scenario.workload);
    if (program != nullptr) rows.push_back(RowOf(cases[i], *program, results[i]));
  }
  std::ranges::stable_sort(rows, {}, &RaceRow::pattern);
  std::map<std::string, double> unguarded;  // the newest, where a scenario is repeated
  for (const RaceRow& row : rows) {
    if (row.guard == "none") unguarded[row.pattern] = row.round_us;
  }
  for (RaceRow& row : rows) {
    const auto known = unguarded.find(row.pattern);
    if (row.guard != "none" && known != unguarded.end())
      row.extra_us = row.round_us - known->second;
  }
  return rows;
}

bool TimesMeanSomething(const std::string& backend,
                        const std::vector<std::pair<std::string, std::string>>& environment) {
  if (backend.starts_with("sim")) return true;
  const std::map<std::string, std::string> facts(environment.begin(), environment.end());
  std::map<std::string, Share> hosts;
  for (int rank = 0; facts.contains(fmt::format("ranks/{}/cpus", rank)); ++rank) {
    const auto host = facts.find(fmt::format("ranks/{}/boot_id", rank));
    Share& share = hosts[host == facts.end() ? "" : host->second];
    ++share.ranks;
    for (const auto cpu : facts.at(fmt::format("ranks/{}/cpus", rank)) | std::views::split(',')) {
      share.processors.emplace(cpu.begin(), cpu.end());
    }
  }
  return !hosts.empty() && std::ranges::all_of(hosts, [](const auto& host) {
    const Share& share = host.second;
    return static_cast<int>(share.processors.size()) >= kProcessorsOfARank * share.ranks;
  });
}

std::string FormatRaceTable(const std::vector<RaceRow>& rows, bool times_mean_something) {
  if (rows.empty()) return "";
  std::string text =
      fmt::format("\n{:<20}  {:<22}  {:>9}  {:>10}  {:>13}  {:>10}  {:>10}\n", "stream race",
                  "guard", "corrupt", "overlapped", "first element", "a round", "the cure");
  for (const RaceRow& row : rows) {
    text += fmt::format("{:<20}  {:<22}  {:>9}  {:>10}  {:>13}  {:>10}  {:>10}\n", row.pattern,
                        row.guard, fmt::format("{}/{}", row.corrupt_rounds, row.rounds),
                        fmt::format("{}/{}", row.overlapped_rounds, row.rounds),
                        row.first_element ? fmt::format("{}", *row.first_element) : "-",
                        FormatDuration(row.round_us * 1e3),
                        row.extra_us && times_mean_something
                            ? (*row.extra_us < 0 ? "" : "+") + FormatDuration(*row.extra_us * 1e3)
                            : "-");
  }
  return text + FormatHints(rows, times_mean_something);
}

}  // namespace lockstep::stress::harness
