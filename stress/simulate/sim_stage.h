// One communicator of a simulated case, from its connection to where nothing can happen any more.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/comm/sim/rules.h"
#include "core/verdict/judge.h"
#include "stress/cases/catalogue.h"
#include "stress/faults/fault_plan.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::simulate {

struct SimStage {
  const cases::StressCase* stress_case = nullptr;
  std::vector<faults::PlannedFault> faults;  // those that fired before are nobody's (rank -1)
  int generation = 0;
  std::vector<int> members = {};  // by rank here: the rank at the beginning
  std::int64_t first_iteration = 0;
  std::vector<bool> restarted = {};  // by rank here
};

// All but `fired` by rank in the stage.
struct StageEnd {
  std::vector<verdict::RankEvidence> evidence = {};
  std::vector<std::optional<workloads::ProgramReport>> reports = {};
  std::vector<bool> gone = {};  // its process is; one that its library failed is not
  std::vector<bool> abort_hangs = {};
  std::vector<bool> wrong_membership = {};
  std::vector<bool> connected = {};
  std::vector<bool> fired = {};  // by fault
  bool complete = true;
};

// Whether the ranks of a scenario fit into this process.
Status CheckSimMemory(const scenario::Scenario& scenario, comm::sim::SimRules rules);

// `fired`: before this stage. `interrupted`: as in SimOptions.
StageEnd RunStage(const SimStage& stage, comm::sim::SimRules rules, double deadline_seconds,
                  std::vector<bool> fired, const std::function<bool()>& interrupted);

}  // namespace lockstep::stress::simulate
