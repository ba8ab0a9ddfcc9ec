// Comma-separated values (RFC 4180).
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// A row with its new line. A cell that holds a comma, a quote or a new line gets quotes.
std::string CsvLine(const std::vector<std::string>& cells);

}  // namespace lockstep
