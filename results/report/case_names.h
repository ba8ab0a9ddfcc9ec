// Names of cases in the first column of a table, as short as its width asks for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "results/report/grid.h"
#include "results/store/run.h"

namespace lockstep::results::report {

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

}  // namespace lockstep::results::report
