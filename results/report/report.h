// A run as text. Everything shown comes from the Run; a figure that it does not have is "-".
#pragma once

#include <cstddef>
#include <string>

#include "results/store/run.h"

namespace lockstep::results::report {

// "FAIL: rank 1 (host node2, pid 4711) was killed by SIGKILL in all_reduce 50; rank 0 waits for
// it": the verdict, who, what, where, in 25 words. One line without its newline: run.summary_line,
// or else that of the first finding.
std::string Headline(const store::Run& run);

// The headline; below it program, time, ranks and exit code; then an empty line.
std::string FormatHead(const store::Run& run);

// Which columns the console table has.
enum class Columns {
  kFew,  // those that are read at a glance, within kNarrow characters
  kAll,
};
inline constexpr std::size_t kNarrow = 80;

// The console table: the headline first, then a row a case, then what the options do and what to
// choose, then findings with their remedies, then what the columns mean: the formulas of busbw and
// of the limit, and what the limit is made of, or why there is none.
std::string FormatTable(const store::Run& run, Columns columns = Columns::kFew);
// nccl-tests' columns: size count type redop root, then time algbw busbw #wrong for out of place
// and in place.
std::string FormatNcclTests(const store::Run& run);
// One JSON object a case, one an effect of an option, one a pair of ranks whose link was measured,
// then one for the run; what is not a number is
// null.
std::string FormatJsonLines(const store::Run& run);

// Comma-separated values with a head, quoted as RFC 4180 says: a row a case, or of a run of links a
// row a pair. Settings and parts have columns of their own ("setting:comm_hook", "part:forward_ns",
// a median). What is not a number is an empty cell.
std::string FormatCsv(const store::Run& run);

// The facts of machine and software, one a line below the heading of its group.
std::string FormatEnvironment(const store::Run& run);
// The newest `most` events of every journal: time since the run began, kind, invocation.
std::string FormatHistory(const store::Run& run, std::size_t most);

// "clocks beside node1's: node2 +1.000021 s, drift +50.1 ppm, error 12.3 us": the time of day of
// the other hosts at the start, how much faster they count, and how well their stamps are placed.
// "" for one host.
std::string FormatClocks(const store::Run& run);
// A row a case: how far apart ranks came, and what was left to do when all were there.
std::string FormatArrivals(const store::Run& run);

// The tables of a program that was watched: who waited, for whom, and where in the program. Ranks,
// then the places where most was waited; lines of at most kNarrow columns. "" for a run that
// watched nothing.
std::string FormatWaits(const store::Run& run);

// One line about a run for a list of runs: when, verdict, name, cases, headline.
std::string FormatLine(const store::Run& run);

}  // namespace lockstep::results::report
