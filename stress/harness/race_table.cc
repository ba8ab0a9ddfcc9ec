#include "stress/harness/race_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/units.h"

namespace lockstep {
namespace {

double Of(const std::map<std::string, double>& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? 0 : found->second;
}

RaceRow RowOf(const StreamRaceProgram& program, const CaseResult& result) {
  RaceRow row;
  row.pattern = NameOf(program.pattern);
  row.guard = NameOf(program.guard);
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
    if (program != nullptr) rows.push_back(RowOf(*program, results[i]));
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

std::string FormatRaceTable(const std::vector<RaceRow>& rows) {
  if (rows.empty()) return "";
  std::string text =
      fmt::format("\n{:<20}  {:<15}  {:>9}  {:>10}  {:>13}  {:>10}  {:>10}\n", "stream race",
                  "guard", "corrupt", "overlapped", "first element", "a round", "the cure");
  for (const RaceRow& row : rows) {
    text += fmt::format("{:<20}  {:<15}  {:>9}  {:>10}  {:>13}  {:>10}  {:>10}\n", row.pattern,
                        row.guard, fmt::format("{}/{}", row.corrupt_rounds, row.rounds),
                        fmt::format("{}/{}", row.overlapped_rounds, row.rounds),
                        row.first_element ? fmt::format("{}", *row.first_element) : "-",
                        FormatDuration(row.round_us * 1e3),
                        row.extra_us
                            ? (*row.extra_us < 0 ? "-" : "+") +
                                  FormatDuration((*row.extra_us < 0 ? -1 : 1) * *row.extra_us * 1e3)
                            : "-");
  }
  return text;
}

}  // namespace lockstep
