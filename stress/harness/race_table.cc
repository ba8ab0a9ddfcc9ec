#include "stress/harness/race_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/units.h"

namespace lockstep {
namespace {

double Of(const std::map<std::string, double>& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->second;
}

constexpr std::string_view kLaunchBlocking = "CUDA_LAUNCH_BLOCKING=1";

bool HasLaunchBlocking(const StressCase& stress_case) {
  return std::ranges::any_of(stress_case.faults, [](const PlannedFault& fault) {
    return std::ranges::count(fault.variables, kLaunchBlocking) > 0;
  });
}

RaceRow RowOf(const StressCase& stress_case, const StreamRaceProgram& program,
              const CaseResult& result) {
  RaceRow row;
  row.pattern = NameOf(program.pattern);
  row.guard = HasLaunchBlocking(stress_case) ? kLaunchBlocking : NameOf(program.guard);
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

}  // namespace

std::vector<RaceRow> RaceRowsOf(const std::vector<StressCase>& cases,
                                const std::vector<CaseResult>& results) {
  std::vector<RaceRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto* program = std::get_if<StreamRaceProgram>(&cases[i].scenario.workload);
    if (program != nullptr) rows.push_back(RowOf(cases[i], *program, results[i]));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RaceRow& a, const RaceRow& b) { return a.pattern < b.pattern; });
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

namespace {

// Of the guards with which no round was corrupt, the one that costs least.
const RaceRow* CheapestCure(const std::vector<RaceRow>& rows, const std::string& pattern) {
  const RaceRow* cheapest = nullptr;
  for (const RaceRow& row : rows) {
    if (row.pattern != pattern || !row.extra_us || row.corrupt_rounds > 0) continue;
    if (cheapest == nullptr || *row.extra_us < *cheapest->extra_us) cheapest = &row;
  }
  return cheapest;
}

std::string FormatHints(const std::vector<RaceRow>& rows) {
  std::string text;
  for (const RaceRow& row : rows) {
    if (row.guard != "none" || row.corrupt_rounds == 0) continue;
    const RaceRow* const cure = CheapestCure(rows, row.pattern);
    if (cure == nullptr) continue;
    text += fmt::format("{}: wrong in {:.0f} % of the rounds; the cheapest cure here is '{}'\n",
                        row.pattern, 100 * row.corrupt_rounds / row.rounds, cure->guard);
  }
  if (text.empty()) return "";
  return "\n" + text +
         "to find such a race in a program on a GPU: does it vanish with CUDA_LAUNCH_BLOCKING=1? "
         "compute-sanitizer --track-stream-ordered-races=all sees those of memory from "
         "cudaMallocAsync; its --tool=racecheck sees shared memory within a kernel only, and no "
         "race between streams\n";
}

}  // namespace

std::string FormatRaceTable(const std::vector<RaceRow>& rows) {
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
                        row.extra_us
                            ? (*row.extra_us < 0 ? "-" : "+") +
                                  FormatDuration((*row.extra_us < 0 ? -1 : 1) * *row.extra_us * 1e3)
                            : "-");
  }
  return text + FormatHints(rows);
}

}  // namespace lockstep
