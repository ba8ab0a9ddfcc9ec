// What a run found out about its ranks, for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/verdict/outcome.h"
#include "results/store/run.h"

namespace lockstep::results::report {

std::string_view Shout(verdict::Verdict verdict);  // "PASS", "FAIL", "INCONCLUSIVE"

// The sections Findings, Ranks (those that did not finish), Stacks and Wrong results; "" when all
// is well.
std::string FormatFindings(const store::Run& run);

// A case without a sample, of which nothing is known but why: tables have no row for it.
bool IsUnmeasured(const store::CaseRecord& record);

// "Not measured: 21 of 24 cases; not begun\n", a line for all of them; "" without any.
std::string UnmeasuredText(const store::Run& run);

// Whether the interval is as narrow as was asked: "precise", "imprecise", or "cut short" of -n; ""
// where nobody asked.
std::string MeasuredText(const store::Summary& summary);

// What became of the ranks of a case, in a few words: "pass", "FAIL, rank 1 hung"; of one that was
// ended early "unfinished", since the headline says why.
std::string OutcomeText(const store::CaseRecord& record);

// The sections "Ranks that did not finish", a line for all ranks that ended alike, and "Stacks and
// errors", a thread's stack once with all its ranks, the culprits' first; "" when all finished. A
// stack differs by its functions: not by addresses, nor by how much of a processor its rank used.
// It goes on in a new line after kStackWidth characters.
std::string FormatUnfinished(const verdict::Judgement& judgement);

inline constexpr std::size_t kStackWidth = 96;

}  // namespace lockstep::results::report
