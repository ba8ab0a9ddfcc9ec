// A case with all ranks in this process, in virtual time: what the rules of a library make of it.
#ifndef LOCKSTEP_STRESS_HARNESS_SIMULATE_H_
#define LOCKSTEP_STRESS_HARNESS_SIMULATE_H_

#include "core/comm/sim/rules.h"
#include "stress/harness/assess.h"
#include "stress/harness/catalogue.h"

namespace lockstep::stress::harness {

// Deterministic from the case and its seed. Virtual silence of all ranks for `deadline_seconds` is
// taken for ever, as on real ones; most hangs are quiescence: nothing can happen any more.
CaseResult Simulate(const StressCase& stress_case, comm::sim::SimRules rules,
                    double deadline_seconds);

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_SIMULATE_H_
