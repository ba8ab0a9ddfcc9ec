// A change of time as every comparison writes it.
#pragma once

#include <string>

#include "core/base/units.h"

namespace lockstep::results::compare {

// In percent, tenths at most: "+5.1" of 0.0513, and "+5" where `half_width`, half of the interval
// of `ratio`, is 0.03. "?" where there is none, and of a time below zero.
std::string ChangeText(double ratio, double half_width = kNoHalfWidth);

}  // namespace lockstep::results::compare
