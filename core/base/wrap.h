// Sentences over the lines of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

inline constexpr std::size_t kTerminalColumns = 80;

// `text` in lines of at most `columns` characters (UTF-8), each with a new line at its end. Lines
// break at spaces, so a longer word has a line of its own. All but the first begin with `indent`
// spaces.
std::string Wrap(std::string_view text, std::size_t indent = 4,
                 std::size_t columns = kTerminalColumns);

// `text` in one line: its line ends become blanks, and none is at its end.
std::string JoinLines(std::string text);

}  // namespace lockstep
