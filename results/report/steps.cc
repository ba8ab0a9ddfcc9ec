// Cases whose iterations have parts: a table of the parts, skew of loads, and effects of options.
// Rates are taken over all steps together, because a batch that waits in a queue is free.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "core/base/wrap.h"
#include "core/stats/skew.h"
#include "results/report/figures.h"
#include "results/report/findings.h"
#include "results/report/sections.h"

namespace lockstep::results::report {
namespace {

// Parts that are read at a glance, and their titles. What they leave of a step is its computation.
constexpr std::pair<const char*, const char*> kAtAGlance[] = {
    {"exposed_communication_ns", "exposed"},
    {"overlap", "overlap"},
    {"launch_ns", "launch"},
    {"completion_ns", "completion"},
    {"load_ns", "load"},
    {"waited_ns", "waited"},
    {"copies_ns", "copies"}};

// "" of a part that is not read at a glance.
std::string TitleOf(const std::string& name, Columns columns) {
  if (columns == Columns::kFew) {
    for (const auto& [part, title] : kAtAGlance) {
      if (name == part) return title;
    }
    return "";
  }
  std::string title = name.ends_with("_ns") ? name.substr(0, name.size() - 3) : name;
  std::replace(title.begin(), title.end(), '_', ' ');
  return title;
}

// All parts that cases of the run have and that are shown, in order of first appearance.
std::vector<const store::Part*> PartsOf(const store::Run& run, Columns columns) {
  std::vector<const store::Part*> parts;
  for (const store::CaseRecord& record : run.cases) {
    for (const store::Part& part : record.parts) {
      const bool known = std::ranges::any_of(
          parts, [&](const store::Part* other) { return other->name == part.name; });
      if (!known && !TitleOf(part.name, columns).empty()) parts.push_back(&part);
    }
  }
  return parts;
}

std::string CellOf(const store::CaseRecord& record, const std::string& name, const TimeUnit& unit) {
  for (const store::Part& part : record.parts) {
    if (part.name != name) continue;
    return record.summary.iterations == 0 ? "-" : PartText(part, unit);
  }
  return "-";
}

std::vector<std::string> RowOf(const store::CaseRecord& record,
                               const std::vector<const store::Part*>& parts, const TimeUnit& unit,
                               Columns columns) {
  const store::Summary& s = record.summary;
  const bool any = s.iterations > 0;
  const bool all = columns == Columns::kAll;
  std::vector<std::string> row = {any ? MedianText(s, unit) : "-", any ? PrecisionText(s) : "-"};
  if (all) row.push_back(any ? TimeText(s.max_ns, unit) : "-");
  for (const store::Part* part : parts) row.push_back(CellOf(record, part->name, unit));
  if (all) {
    row.push_back(fmt::format("{}/{}", s.iterations, s.rounds));
    row.push_back(WrongText(s));
  }
  row.push_back(MeasuredText(s));
  row.push_back(OutcomeText(record));
  return row;
}

// Of the load times of all ranks; rows that a rank did not complete are left out.
std::optional<stats::Skew> SkewOf(const store::CaseRecord& record) {
  const auto part = std::ranges::find(record.parts, "load_ns", &store::Part::name);
  if (part == record.parts.end() || record.samples.ranks == 0) return std::nullopt;
  const auto ranks = static_cast<std::size_t>(record.samples.ranks);
  std::vector<double> times;
  for (std::size_t row = 0; row + ranks <= part->values.size(); row += ranks) {
    const auto begin = part->values.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(ranks);
    if (std::all_of(begin, end, [](double ns) { return std::isfinite(ns) && ns >= 0; })) {
      times.insert(times.end(), begin, end);
    }
  }
  if (times.empty()) return std::nullopt;
  return stats::MeasureSkew(times, record.samples.ranks);
}

// What a rank got through in all its steps, over the time they took: batches that wait in a queue
// are free, and those that follow pay for them, so no single step tells a rate.
double SamplesPerSecond(const store::CaseRecord& record, std::size_t rank) {
  const auto part = std::ranges::find(record.parts, "samples", &store::Part::name);
  if (part == record.parts.end()) return std::nan("");
  const auto ranks = static_cast<std::size_t>(record.samples.ranks);
  double samples = 0;
  double ns = 0;
  for (std::size_t at = rank; at < part->values.size(); at += ranks) {
    if (at >= record.samples.exit_ns.size()) break;
    if (!std::isfinite(part->values[at]) || record.samples.exit_ns[at] < 0) continue;
    samples += part->values[at];
    ns += static_cast<double>(record.samples.exit_ns[at] - record.samples.entry_ns[at]);
  }
  return samples / (ns * 1e-9);
}

}  // namespace

Grid StepGrid(const store::Run& run, NameStyle names, Columns columns) {
  using enum Grid::Align;
  const std::vector<const store::Part*> parts = PartsOf(run, columns);
  const TimeUnit unit = TimeUnitOf(run);
  const bool all = columns == Columns::kAll;
  Grid grid;
  grid.AddColumn("case", kLeft);
  grid.AddColumn("step", kRight, unit.name);
  grid.AddColumn("+-", kRight, "%");
  if (all) grid.AddColumn("max", kRight, unit.name);
  for (const store::Part* part : parts) {
    grid.AddColumn(TitleOf(part->name, columns), kRight, part->units == "ns" ? unit.name : "");
  }
  if (all) grid.AddColumns(kRight, {"iter/rounds", "wrong"});
  grid.AddColumns(kLeft, {"measured", "outcome"});
  CaseRows rows(names, grid);
  for (const store::CaseRecord& record : run.cases) {
    if (record.parts.empty() || IsUnmeasured(record)) continue;
    rows.Add(record.name, RowOf(record, parts, unit, columns));
  }
  return grid;
}

std::string StepLegend(const store::Run& run, Columns columns) {
  std::map<std::string, std::string> over;
  for (const store::Part* part : PartsOf(run, columns)) {
    std::string& names = over[part->over];
    names += (names.empty() ? "" : ", ") + TitleOf(part->name, columns);
  }
  std::string text;
  for (const auto& [how, names] : over) {
    const std::string of = how == "slowest" ? "of the rank with the longest step"
                                            : fmt::format("the {} over ranks", how);
    text += fmt::format("{}: {}, median over rounds\n", names, of);
    if (names.find("exposed") == 0) text += "exposed: communication that no computation hides\n";
  }
  return text;
}

std::string FormatSkew(const store::Run& run) {
  using enum Grid::Align;
  Grid grid;
  grid.AddColumn("case", kLeft);
  grid.AddColumns(kRight,
                  {"rank", "samples/s", "load p50", "load p99", "waited/iter", "imbalance"});
  grid.AddColumn("waiting", kRight, "%");
  for (const store::CaseRecord& record : run.cases) {
    const std::optional<stats::Skew> skew = SkewOf(record);
    if (!skew) continue;
    const auto iterations = static_cast<double>(record.samples.iterations());
    for (std::size_t rank = 0; rank < skew->ranks.size(); ++rank) {
      const stats::RankSkew& one = skew->ranks[rank];
      const bool first = rank == 0;
      grid.AddRow({first ? record.name : "", std::to_string(rank),
                   FormatFigure(SamplesPerSecond(record, rank)), FormatDuration(one.p50),
                   FormatDuration(one.p99), FormatDuration(one.waited / iterations),
                   first ? FormatFigure(skew->imbalance, HalfWidthOfStep(0.01)) : "",
                   first ? PercentText(100 * skew->waiting_fraction) : ""});
    }
  }
  if (grid.empty()) return "";
  return "\nLoading, rank by rank (imbalance: largest mean over average; waiting: of ranks' "
         "time)\n" +
         grid.Format(kNarrow);
}

Grid EffectGrid(const store::Run& run, NameStyle names) {
  using enum Grid::Align;
  Grid grid;
  grid.AddColumns(kLeft, {"case", "option", "baseline"});
  grid.AddColumns(kRight, {"ratio", "95 %", "rounds"});
  CaseRows rows(names, grid);
  for (const store::OptionEffect& e : run.effects) {
    const double low = 1 / e.interval_high, high = 1 / e.interval_low;
    const bool known = std::isfinite(low) && std::isfinite(high);
    rows.Add(run.cases[static_cast<std::size_t>(e.case_index)].name,
             {OneLine(e.option + "=" + e.value), OneLine(e.baseline_value),
              FormatFigure(1 / e.ratio, (high - low) / 2),
              known ? FormatInterval(low, high) : "unknown", std::to_string(e.rounds)});
  }
  return grid;
}

std::string FormatEffects(const store::Run& run, NameStyle names, Columns columns) {
  const Grid grid = EffectGrid(run, names);
  std::string text;
  if (!grid.empty()) {
    text += "\nEffects of options: time over that of the baseline, in rounds with both\n" +
            grid.Format(columns == Columns::kFew ? kNarrow : Grid::kAny);
  }
  if (run.recommendation.empty()) return text;
  return text + "\nRecommendation: " + OneLine(run.recommendation) + "\n";
}

}  // namespace lockstep::results::report
