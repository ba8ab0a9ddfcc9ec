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

// `text` in one line that a terminal shows and does not obey: control characters are written as in
// C (\n, \x1b), and no line end is at its end. Whatever a user typed, a library said or a file
// holds passes through here when it is printed: a path in a note, the message of a Status.
std::string OneLine(std::string_view text);

}  // namespace lockstep
