// What the operating system said of ranks that did not finish: each distinct stack once.
#pragma once

#include <string>

#include "core/verdict/outcome.h"

namespace lockstep::results::report {

// The sections "Ranks that did not finish", a line for all ranks that ended alike, and "Stacks and
// errors", a thread's stack once with all its ranks, the culprits' first; "" when all finished. A
// stack differs by its functions: not by addresses, nor by how much of a processor its rank used.
// It goes on in a new line after kStackWidth characters.
std::string FormatUnfinished(const verdict::Judgement& judgement);

inline constexpr std::size_t kStackWidth = 96;

}  // namespace lockstep::results::report
