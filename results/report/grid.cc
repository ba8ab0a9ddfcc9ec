// Widths come from the cells, so a table is put together twice at most: to see how wide it is, and
// to print it.
#include "results/report/grid.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::results::report {
namespace {

constexpr std::size_t kGap = 2;

}  // namespace

std::size_t DisplayWidth(const std::string& text) {
  // All bytes but the continuations of UTF-8.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void Grid::AddColumn(std::string title, Align align, std::string unit) {
  aligns_.push_back(align);
  titles_.push_back(std::move(title));
  units_.push_back(std::move(unit));
}

void Grid::AddRow(std::vector<std::string> cells) {
  LOCKSTEP_CHECK(cells.size() == aligns_.size() && cells.size() > 1,
                 "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

void Grid::AddHeading(std::string text) { rows_.push_back({std::move(text)}); }

std::vector<std::size_t> Grid::Widths(std::size_t most) const {
  std::vector<std::size_t> widths;
  std::size_t others = 0;
  for (std::size_t i = 0; i < aligns_.size(); ++i) {
    widths.push_back(std::max(DisplayWidth(titles_[i]), DisplayWidth(units_[i])));
    for (const auto& row : rows_) {
      if (i > 0 && row.size() > 1) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
    if (i > 0) others += kGap + widths[i];
  }
  for (const auto& row : rows_) {
    const std::size_t first = DisplayWidth(row.front());
    if (row.size() > 1 && (most == kAny || first + others <= most)) {
      widths[0] = std::max(widths[0], first);
    }
  }
  return widths;
}

std::size_t Grid::width() const {
  std::size_t width = 0;
  for (const std::size_t column : Widths(kAny)) width += column + kGap;
  return width < kGap ? 0 : width - kGap;
}

std::string Grid::LineOf(const std::vector<std::string>& cells,
                         const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - DisplayWidth(cells[i]), ' ');
    if (i > 0) line += std::string(kGap, ' ');
    line += aligns_[i] == Align::kLeft ? cells[i] + padding : padding + cells[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Grid::Format(std::size_t most) const {
  const std::vector<std::size_t> widths = Widths(most);
  std::string out = LineOf(titles_, widths);
  if (std::any_of(units_.begin(), units_.end(), [](const auto& unit) { return !unit.empty(); })) {
    out += LineOf(units_, widths);
  }
  for (std::vector<std::string> row : rows_) {
    if (row.size() == 1) {
      out += row.front() + "\n";
      continue;
    }
    if (DisplayWidth(row.front()) > widths.front()) {
      out += row.front() + "\n";
      row.front().clear();
    }
    out += LineOf(row, widths);
  }
  return out;
}

}  // namespace lockstep::results::report
