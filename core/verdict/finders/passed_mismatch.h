// What a mismatch that let its ranks pass may have led to.
#pragma once

#include "core/verdict/outcome.h"
#include "core/verdict/situation.h"

namespace lockstep::verdict::finders {

// Whether what ended the ranks (`end`, found without it) may be a consequence of a mismatch that
// held nobody. What only spoils data, and left all calls behind it where they belong, ends no rank.
bool MayFollow(const Situation& situation, const Mismatch& mismatch, const Finding& end);

}  // namespace lockstep::verdict::finders
