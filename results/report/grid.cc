#include "results/report/grid.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::results::report {

std::size_t DisplayWidth(const std::string& text) {
  // All bytes but the continuations of UTF-8.
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void Grid::AddColumn(std::string title, Align align) {
  aligns_.push_back(align);
  rows_[0].push_back(std::move(title));
}

void Grid::AddRow(std::vector<std::string> cells) {
  LOCKSTEP_CHECK(cells.size() == aligns_.size(), "a row has a cell for each column");
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Grid::Widths() const {
  std::vector<std::size_t> widths(aligns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    }
  }
  return widths;
}

std::size_t Grid::width() const {
  std::size_t width = 0;
  for (const std::size_t column : Widths()) width += column + 2;
  return width < 2 ? 0 : width - 2;
}

std::string Grid::Format() const {
  const std::vector<std::size_t> widths = Widths();
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      if (i > 0) line += "  ";
      line += aligns_[i] == Align::kLeft ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace lockstep::results::report
