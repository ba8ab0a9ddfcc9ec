// Test material: one case of a CaseRunner over a list of events, and what came of it as text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/coordinator/testing/fake_coordinator.h"
#include "stress/workloads/program_report.h"
#include "stress/faults/fault_plan.h"
#include "stress/run/protocol.h"

namespace lockstep::stress::run {

struct StressScript {
  int ranks = 2;
  std::string backend = "gloo";
  std::string recovery = {};  // the mode; empty: none
  bool lingers = false;
  double limit_seconds = 300;
  std::vector<faults::PlannedFault> faults = {};
  std::vector<std::string> hosts = {};  // one a rank; none: all on one
  bool all_commands = false;            // also those of every case
};

// Commands, then what was found: a line each. Commands of every case are left out: "start", its
// order to each rank, that no link is watched, "collect" (if there is none, "no stacks"), "end".
// -T is 5 s.
std::string Conduct(const StressScript& script, coordinator::Script steps);

// What workers say.
coordinator::ScriptStep Finished(int rank, std::int64_t completed = 5);
coordinator::ScriptStep Raised(int rank, const std::string& error, std::int64_t completed = 3);
coordinator::ScriptStep Aborted(int rank, int generation);
coordinator::ScriptStep Connecting(int rank, int generation, int place, int size);
coordinator::ScriptStep Connected(int rank, int generation, double at_seconds);
coordinator::ScriptStep Fired(int rank, int fault);

// What a gloo rank says whose peer is gone.
inline constexpr char kClosed[] = "gloo: Connection closed by peer";

// What agents say: a silent rank; SIGTERM of the launcher; both ranks after their 50 iterations.
coordinator::ScriptStep Quiet(int rank);
coordinator::ScriptStep Terminate();
coordinator::ScriptStep BothDone();

}  // namespace lockstep::stress::run
