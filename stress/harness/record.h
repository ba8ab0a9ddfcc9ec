// A stress run as results/store keeps it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "stress/cases/catalogue.h"
#include "stress/harness/options.h"
#include "stress/harness/report.h"

namespace lockstep::stress::harness {

// What is known before it begins; the plan holds the text of every scenario.
results::store::Run NewStressRun(const StressOptions& options, const cases::Selection& selection,
                                 const std::string& command_line);

// A case record a case, with its verdict; the history of every worker; the verdict of all. Journals
// move from the outcome into the run: where memory is short there is no room for a copy.
void Conclude(const std::vector<control::AgentInfo>& agents, const control::LaunchContext& context,
              StressOutcome& outcome, results::store::Run& run);

// From the cases of a run that is over to what is said of it as a whole.
void ConcludeCases(std::size_t planned, results::store::Run& run);

}  // namespace lockstep::stress::harness
