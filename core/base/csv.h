// Comma-separated values (RFC 4180).
#ifndef LOCKSTEP_CORE_BASE_CSV_H_
#define LOCKSTEP_CORE_BASE_CSV_H_

#include <string>
#include <vector>

namespace lockstep {

// A row with its new line. A cell that holds a comma, a quote or a new line gets quotes.
std::string CsvLine(const std::vector<std::string>& cells);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_BASE_CSV_H_
