// Text in columns as wide as their widest cell.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace lockstep::results::report {

class Grid {
 public:
  enum class Align { kLeft, kRight };
  // A unit stands below the title, in a second line of the head.
  void AddColumn(std::string title, Align align, std::string unit = "");
  void AddColumns(Align align, std::initializer_list<const char*> titles) {
    for (const char* title : titles) AddColumn(title, align);
  }
  // As many cells as columns.
  void AddRow(std::vector<std::string> cells);
  // A line of its own above the rows that follow; columns take no notice of it.
  void AddHeading(std::string text);
  // Columns two spaces apart, no space at the end of a line. Where a first cell would make its line
  // longer than `most`, it has a line of its own, and its row follows.
  std::string Format(std::size_t most = kAny) const;
  bool empty() const { return rows_.empty(); }
  // Of the longest line but for headings.
  std::size_t width() const;

  static constexpr std::size_t kAny = static_cast<std::size_t>(-1);

 private:
  std::vector<std::size_t> Widths(std::size_t most) const;
  std::string LineOf(const std::vector<std::string>& cells,
                     const std::vector<std::size_t>& widths) const;
  std::vector<Align> aligns_;
  std::vector<std::string> titles_;
  std::vector<std::string> units_;
  std::vector<std::vector<std::string>> rows_;  // one cell: a heading
};

// How many columns a terminal needs for UTF-8 text, counted as one a character.
std::size_t DisplayWidth(const std::string& text);

}  // namespace lockstep::results::report
