#include "results/report/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "results/report/figures.h"
#include "results/report/findings.h"

namespace lockstep {
namespace {

// All parts that cases of the run have, in order of first appearance.
std::vector<const Part*> PartsOf(const Run& run) {
  std::vector<const Part*> parts;
  for (const CaseRecord& record : run.cases) {
    for (const Part& part : record.parts) {
      const bool known = std::any_of(parts.begin(), parts.end(),
                                     [&](const Part* other) { return other->name == part.name; });
      if (!known) parts.push_back(&part);
    }
  }
  return parts;
}

// The unit is in the cell.
std::string TitleOf(const std::string& name) {
  std::string title = name.ends_with("_ns") ? name.substr(0, name.size() - 3) : name;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

std::string CellOf(const CaseRecord& record, const std::string& name) {
  for (const Part& part : record.parts) {
    if (part.name != name) continue;
    return record.summary.iterations == 0 ? "-" : PartText(part.median, part.units);
  }
  return "-";
}

std::vector<std::string> RowOf(const CaseRecord& record, const std::vector<const Part*>& parts,
                               std::size_t skip) {
  const Summary& s = record.summary;
  const bool any = s.iterations > 0;
  std::vector<std::string> row = {record.name.substr(skip), any ? DurationText(s.median_ns) : "-",
                                  any ? PrecisionText(s) : "-",
                                  any ? DurationText(s.max_ns) : "-"};
  for (const Part* part : parts) row.push_back(CellOf(record, part->name));
  row.push_back(fmt::format("{}/{}", s.iterations, s.rounds));
  row.push_back(s.checked_elements > 0 || s.wrong_elements > 0 ? std::to_string(s.wrong_elements)
                                                               : "-");
  row.push_back(OutcomeText(record));
  return row;
}

}  // namespace

Grid StepGrid(const Run& run, std::size_t skip) {
  using enum Grid::Align;
  const std::vector<const Part*> parts = PartsOf(run);
  Grid grid;
  grid.AddColumn("case", kLeft);
  for (const char* title : {"step", "+-%", "max"}) grid.AddColumn(title, kRight);
  for (const Part* part : parts) grid.AddColumn(TitleOf(part->name), kRight);
  for (const char* title : {"iter/rounds", "wrong"}) grid.AddColumn(title, kRight);
  grid.AddColumn("outcome", kLeft);
  for (const CaseRecord& record : run.cases) {
    if (!record.parts.empty()) grid.AddRow(RowOf(record, parts, skip));
  }
  return grid;
}

std::string StepLegend(const Run& run) {
  std::map<std::string, std::string> over;
  for (const Part* part : PartsOf(run)) {
    std::string& names = over[part->over];
    names += (names.empty() ? "" : ", ") + TitleOf(part->name);
  }
  std::string text;
  for (const auto& [how, names] : over) {
    const std::string of = how == "slowest" ? "of the rank whose step was the longest"
                                            : fmt::format("the {} over ranks", how);
    text += fmt::format("{}: {}, median over iterations\n", names, of);
  }
  return text;
}

std::string FormatEffects(const Run& run) {
  std::string text;
  if (!run.effects.empty()) {
    text += "\nWhat the options do, in rounds that visited both (> 1 is faster)\n";
  }
  for (const Effect& e : run.effects) {
    text += fmt::format("  {}={} instead of {}: {:.3f}x (95 %: {:.3f} to {:.3f}, {} rounds), {}\n",
                        e.option, e.value, e.baseline_value, e.ratio, e.interval_low,
                        e.interval_high, e.rounds,
                        OneLine(run.cases[static_cast<std::size_t>(e.case_index)].name));
  }
  if (run.recommendation.empty()) return text;
  return text + "\nRecommendation: " + OneLine(run.recommendation) + "\n";
}

}  // namespace lockstep
