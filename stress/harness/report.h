// The verdicts of a stress run as text.
#pragma once

#include <string>
#include <vector>

#include "results/store/run.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"

namespace lockstep::stress::harness {

// Of the cases that were selected; those that turned out to be unmet are left out.
struct StressOutcome : cases::Selection {
  std::string backend;
  std::vector<cases::CaseResult> results;  // one a case that was run
  bool terminated = false;
  std::string worker_facts = {};  // core/coordinator/machine_facts.h
};

// The headline, a row a case, then of each case that failed the finding, the remedy and the last
// collectives side by side. `run`: the record of the outcome.
std::string FormatStressTable(const StressOutcome& outcome, const results::store::Run& run);

// As the scenario specification says: {"schema": 1, "cases": [...]}.
std::string FormatStressJson(const StressOutcome& outcome);

}  // namespace lockstep::stress::harness
