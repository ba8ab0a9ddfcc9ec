// Smaller trials that fail alike.
#pragma once

#include <functional>

#include "stress/fuzz/trial.h"

namespace lockstep::stress::fuzz {

// Whether a trial still fails as the first one did.
using StillFails = std::function<bool(const FuzzTrial&)>;

// Removes ranks, steps and communicators, and makes what is left plainer, as long as it still
// fails: greedily, at most `most` attempts.
FuzzTrial Shrink(const FuzzTrial& trial, const StillFails& still_fails, int most = 5000);

}  // namespace lockstep::stress::fuzz
