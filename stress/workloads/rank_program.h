// A scenario's program on one rank: knows only ports, so that it runs in a process of its own and
// in a simulation alike.
#ifndef LOCKSTEP_STRESS_WORKLOADS_RANK_PROGRAM_H_
#define LOCKSTEP_STRESS_WORKLOADS_RANK_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/comm/recorded.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/plan/scenario.h"
#include "stress/faults/fault_gate.h"

namespace lockstep {

struct RankPorts {
  Communicator& world;             // as the program sees it: with the faults on top
  RecordedCommunicator& recorded;  // the same below the faults, which writes the journal
  Device& device;
  Kernels& kernels;
  Stream& compute;
  Stream& communication;  // may be `compute`; of training
  FaultGate& gate;
  RankBody& body;
};

// What became of the program on this rank, as the rank itself saw it.
struct RankReport {
  Status status;                // ok: finished; kSystemFailed: raised
  std::string where;            // "join_exit": the part of the program it was in
  std::int64_t iteration = -1;  // of this rank, from 0
  std::int64_t checked = 0;     // elements of results that were compared
  std::string wrong_data;       // the first wrong element; empty: none
  std::shared_ptr<void> kept;   // what streams may still refer to when the program raised
  std::string gradients;        // fingerprint where all ranks must have the same; else empty
};

// Runs the workload to its end. Data are checked where the scenario promises right data.
RankReport RunWorkload(const Scenario& scenario, std::uint64_t seed, const RankPorts& ports);

RankReport RunScript(const ScriptProgram& program, std::uint64_t seed, const RankPorts& ports);
RankReport RunTrainingWorkload(const TrainingProgram& program, std::uint64_t seed,
                               const RankPorts& ports);

}  // namespace lockstep

#endif  // LOCKSTEP_STRESS_WORKLOADS_RANK_PROGRAM_H_
