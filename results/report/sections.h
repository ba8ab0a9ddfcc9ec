// The parts of the console table that have files of their own: names of cases, links, steps and the
// legend.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/report/grid.h"
#include "results/report/report.h"
#include "results/store/run.h"

namespace lockstep::results::report {

// Names of cases in the first column of a table, as short as its width asks for (case_names.cc).
struct NameStyle {
  std::size_t skip = 0;  // characters that all names begin with, and that stand above the table
  bool grouped = false;  // what is before the last slash is a heading, once for all that follow
};

// Characters that all names begin with, up to and with a slash.
std::size_t CommonPrefix(const std::vector<store::CaseRecord>& cases);

// Whether a heading has three rows on average or more, so that headings make a table clearer.
bool GroupsWell(const std::vector<store::CaseRecord>& cases, std::size_t skip);

// Adds rows of cases to a grid.
class CaseRows {
 public:
  CaseRows(NameStyle style, Grid& grid) : style_(style), grid_(grid) {}
  // `cells`: without the name.
  void Add(const std::string& name, std::vector<std::string> cells);

 private:
  NameStyle style_;
  Grid& grid_;
  std::string heading_;
};

// Matrices of half round trips and of bandwidths while they fit a page, else how they spread; then
// the pairs that stand out, and what each rank sent to all others at once. `run` has links.
std::string FormatLinks(const store::Run& run);

// Of cases whose iterations have parts (training steps, loads): a row for each, a column for each
// part, or for those that are read at a glance. Empty when no case has parts.
Grid StepGrid(const store::Run& run, NameStyle names, Columns columns);
// How ranks become one value, part by part; "" when no case has parts.
std::string StepLegend(const store::Run& run, Columns columns);
// How unevenly the ranks of cases with a part load_ns load, and what it costs; "" without any.
std::string FormatSkew(const store::Run& run);
// A row for each effect: the option's value, the one it is compared with, how many times as long it
// takes.
Grid EffectGrid(const store::Run& run, NameStyle names);
// … and the recommendation. "" without.
std::string FormatEffects(const store::Run& run, NameStyle names, Columns columns);

// What the columns mean, and what the limit is made of. Lines within kNarrow characters, about
// columns that the table has; with all columns also every figure of the host.
std::string FormatLegend(const store::Run& run, Columns columns);

}  // namespace lockstep::results::report
