// How findings speak: everything bounded and on one line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/journal/event.h"

namespace lockstep::verdict {

using journal::JournalEvent;
using journal::Phase;

// "rank 3", "ranks 0 and 2", "ranks 0-6, 9 and 9990 more". `ranks` ascends and is not empty.
std::string FormatRanks(const std::vector<int>& ranks);
// "waits" or "wait", as the number of ranks wants it.
std::string_view Verb(const std::vector<int>& ranks, std::string_view one, std::string_view many);

// The end of a headline, "; ranks 0 and 2 wait for it" or "for them"; "" where nobody waits.
std::string WaitingClause(const std::vector<int>& waiting, const std::vector<int>& culprits);

// "SIGKILL"; "signal 99" for one that has no name.
std::string SignalName(int signal);

// Text from outside (a library's error, a stack) as part of one line: runs of blanks and control
// characters become one space, and what exceeds a bound is cut.
std::string ShortLine(std::string_view text);

// "all_reduce 50 (sequence 101 of communicator 0) f32 x 256 sum": for messages and tables.
std::string DescribeInvocation(const JournalEvent& event);

// The same for a headline: "all_reduce 50", "all_reduce of bucket 3 of iteration 12", "all_reduce
// 11 (join: alive)", "barrier 6 of communicator 2", "recv 1 from peer 0".
std::string NameOfInvocation(const JournalEvent& event);

// "connecting", "checking results" …
std::string_view Doing(Phase phase);

// "0.3 s", "12 s".
std::string Seconds(double seconds);

}  // namespace lockstep::verdict
