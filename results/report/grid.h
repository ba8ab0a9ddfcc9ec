// Text in columns as wide as their widest cell.
#ifndef LOCKSTEP_RESULTS_REPORT_GRID_H_
#define LOCKSTEP_RESULTS_REPORT_GRID_H_

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::results::report {

class Grid {
 public:
  enum class Align { kLeft, kRight };
  void AddColumn(std::string title, Align align);
  // As many cells as columns.
  void AddRow(std::vector<std::string> cells);
  // Columns two spaces apart, no space at the end of a line.
  std::string Format() const;
  bool empty() const { return rows_.size() == 1; }  // but for the titles
  // Of the longest line.
  std::size_t width() const;

 private:
  std::vector<std::size_t> Widths() const;
  std::vector<Align> aligns_;
  std::vector<std::vector<std::string>> rows_ = {{}};  // the first: titles
};

// How many columns a terminal needs for UTF-8 text, counted as one a character.
std::size_t DisplayWidth(const std::string& text);

}  // namespace lockstep::results::report

#endif  // LOCKSTEP_RESULTS_REPORT_GRID_H_
