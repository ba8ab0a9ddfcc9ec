// Cases whose iterations have parts: a table of the parts, skew of loads, and effects of options.
// Rates are taken over all steps together, because a batch that waits in a queue is free.
#include "results/report/steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "core/stats/skew.h"
#include "results/report/figures.h"
#include "results/report/findings.h"

namespace lockstep::results::report {
namespace {

// All parts that cases of the run have, in order of first appearance.
std::vector<const store::Part*> PartsOf(const store::Run& run) {
  std::vector<const store::Part*> parts;
  for (const store::CaseRecord& record : run.cases) {
    for (const store::Part& part : record.parts) {
      const bool known = std::any_of(parts.begin(), parts.end(), [&](const store::Part* other) {
        return other->name == part.name;
      });
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

std::string CellOf(const store::CaseRecord& record, const std::string& name) {
  for (const store::Part& part : record.parts) {
    if (part.name != name) continue;
    return record.summary.iterations == 0 ? "-" : PartText(part.median, part.units);
  }
  return "-";
}

std::vector<std::string> RowOf(const store::CaseRecord& record,
                               const std::vector<const store::Part*>& parts, std::size_t skip) {
  const store::Summary& s = record.summary;
  const bool any = s.iterations > 0;
  std::vector<std::string> row = {record.name.substr(skip), any ? DurationText(s.median_ns) : "-",
                                  any ? PrecisionText(s) : "-", any ? DurationText(s.max_ns) : "-"};
  for (const store::Part* part : parts) row.push_back(CellOf(record, part->name));
  row.push_back(fmt::format("{}/{}", s.iterations, s.rounds));
  row.push_back(s.checked_elements > 0 || s.wrong_elements > 0 ? std::to_string(s.wrong_elements)
                                                               : "-");
  row.push_back(OutcomeText(record));
  return row;
}

// Of the load times of all ranks; rows that a rank did not complete are left out.
std::optional<stats::Skew> SkewOf(const store::CaseRecord& record) {
  const auto part = std::find_if(record.parts.begin(), record.parts.end(),
                                 [](const store::Part& each) { return each.name == "load_ns"; });
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
  const auto part = std::find_if(record.parts.begin(), record.parts.end(),
                                 [](const store::Part& each) { return each.name == "samples"; });
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

Grid StepGrid(const store::Run& run, std::size_t skip) {
  using enum Grid::Align;
  const std::vector<const store::Part*> parts = PartsOf(run);
  Grid grid;
  grid.AddColumn("case", kLeft);
  for (const char* title : {"step", "+-%", "max"}) grid.AddColumn(title, kRight);
  for (const store::Part* part : parts) grid.AddColumn(TitleOf(part->name), kRight);
  for (const char* title : {"iter/rounds", "wrong"}) grid.AddColumn(title, kRight);
  grid.AddColumn("outcome", kLeft);
  for (const store::CaseRecord& record : run.cases) {
    if (!record.parts.empty()) grid.AddRow(RowOf(record, parts, skip));
  }
  return grid;
}

std::string StepLegend(const store::Run& run) {
  std::map<std::string, std::string> over;
  for (const store::Part* part : PartsOf(run)) {
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

std::string FormatSkew(const store::Run& run) {
  using enum Grid::Align;
  Grid grid;
  grid.AddColumn("case", kLeft);
  for (const char* title :
       {"rank", "samples/s", "load p50", "load p99", "waited/iter", "imbalance", "waiting"}) {
    grid.AddColumn(title, kRight);
  }
  for (const store::CaseRecord& record : run.cases) {
    const std::optional<stats::Skew> skew = SkewOf(record);
    if (!skew) continue;
    const auto iterations = static_cast<double>(record.samples.iterations());
    for (std::size_t rank = 0; rank < skew->ranks.size(); ++rank) {
      const stats::RankSkew& one = skew->ranks[rank];
      const bool first = rank == 0;
      grid.AddRow({first ? record.name : "", std::to_string(rank),
                   fmt::format("{:.0f}", SamplesPerSecond(record, rank)), DurationText(one.p50),
                   DurationText(one.p99), DurationText(one.waited / iterations),
                   first ? fmt::format("{:.2f}", skew->imbalance) : "",
                   first ? PercentText(100 * skew->waiting_fraction) + " %" : ""});
    }
  }
  if (grid.empty()) return "";
  return "\nLoading, rank by rank (imbalance: largest mean over average; waiting: part of the "
         "ranks' "
         "time)\n" +
         grid.Format();
}

std::string FormatEffects(const store::Run& run) {
  std::string text;
  if (!run.effects.empty()) {
    text += "\nWhat the options do, in rounds that visited both\n";
  }
  for (const store::OptionEffect& e : run.effects) {
    const std::string interval =
        std::isfinite(e.interval_low) && std::isfinite(e.interval_high)
            ? fmt::format("95 %: {:.3f} to {:.3f}, {} rounds", 1 / e.interval_high,
                          1 / e.interval_low, e.rounds)
            : fmt::format("{} rounds, too few for an interval", e.rounds);
    text += fmt::format("  {}={} instead of {}: takes {:.3f} times as long ({}), {}\n", e.option,
                        e.value, e.baseline_value, 1 / e.ratio, interval,
                        OneLine(run.cases[static_cast<std::size_t>(e.case_index)].name));
  }
  if (run.recommendation.empty()) return text;
  return text + "\nRecommendation: " + OneLine(run.recommendation) + "\n";
}

}  // namespace lockstep::results::report
