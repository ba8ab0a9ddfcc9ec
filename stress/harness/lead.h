// The coordinator of a stress run, from the selected cases to the exit code.
#ifndef LOCKSTEP_STRESS_HARNESS_LEAD_H_
#define LOCKSTEP_STRESS_HARNESS_LEAD_H_

#include <string>

#include "core/base/status.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "stress/cases/catalogue.h"
#include "stress/harness/options.h"

namespace lockstep::stress::harness {

// Meets the other agents, runs the cases, stores and reports. Errors are of input or environment;
// what the system under test did is in the files and in the exit code.
Result<ExitCode> LeadStress(const StressOptions& options, cases::Selection selection,
                            const control::LaunchContext& context,
                            const coordinator::CoordinatorOptions& coordinator_options,
                            const std::string& command_line);

// The same with all ranks in this process: backend sim.
Result<ExitCode> LeadSimulation(const StressOptions& options, cases::Selection selection,
                                const control::LaunchContext& context,
                                const std::string& command_line);

// For CoordinatorOptions::on_failover: the same from what is left when the coordinator is lost.
// What it had judged before is lost with it.
ExitCode SucceedStress(const StressOptions& options, const cases::Selection& selection,
                       const control::LaunchContext& context, const std::string& command_line,
                       const coordinator::FailoverReport& failover);

}  // namespace lockstep::stress::harness

#endif  // LOCKSTEP_STRESS_HARNESS_LEAD_H_
