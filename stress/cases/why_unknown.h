// Whether a case can be compared with what its scenario expects. Pure.
#pragma once

#include <string>

#include "stress/cases/assess.h"

namespace lockstep::stress::cases {

// Why nothing can be said about the case, or "".
std::string WhyUnknown(const StressCase& stress_case, const std::string& backend,
                       const CaseFacts& facts);

}  // namespace lockstep::stress::cases
