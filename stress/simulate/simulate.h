// A case with all ranks in this process, in virtual time: what the rules of a library make of it.
#pragma once

#include <functional>
#include <string>

#include "core/comm/sim/rules.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"

namespace lockstep::stress::simulate {

// Why the case is to end before it is over, or "". Asked now and then.
using WhyEnd = std::function<std::string()>;

// Deterministic from the case and its seed, unless it is ended. Virtual silence of all ranks for
// `deadline_seconds` is taken for ever, as on real ones; most hangs are quiescence: nothing can
// happen any more.
cases::CaseResult Simulate(const cases::StressCase& stress_case, comm::sim::SimRules rules,
                           double deadline_seconds, const WhyEnd& why_end);

}  // namespace lockstep::stress::simulate
