// A scenario's program on one rank: knows only ports, so that it runs in a process of its own and
// in a simulation alike.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "core/base/deadline.h"
#include "core/comm/communicator.h"
#include "core/comm/recorded.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "stress/faults/fault_gate.h"
#include "stress/scenario/scenario.h"
#include "stress/workloads/program_report.h"

namespace lockstep::stress::workloads {

struct RankPorts {
  comm::Communicator& world;             // as the program sees it: with the faults on top
  comm::RecordedCommunicator& recorded;  // the same below the faults, which writes the journal
  device::Device& device;
  device::Kernels& kernels;
  device::Stream& compute;
  device::Stream& communication;  // may be `compute`; of training
  faults::FaultGate& gate;
  faults::RankBody& body;
  // Whether streams beside the program may call the library (on threads of their own).
  bool streams_call = true;
  bool virtual_time = false;  // a simulation: no threads, and time passes only in body.Sleep
  // A run that goes on in another communicator (loops and training).
  std::int64_t first_iteration = 0;
  std::vector<int> members = {};  // by rank: that in the first communicator; empty: this is it
  bool restarted = false;         // a new process, which has its parameters from rank 0
};

// What became of the program on this rank, as the rank itself saw it.
struct RankReport : ProgramReport {
  std::shared_ptr<void> kept = nullptr;  // what streams may still refer to when the program raised
};

// Silence is judged from outside; no wait of a program gives up before.
inline Deadline Forever() { return Deadline::AfterSeconds(kForEverSeconds); }

RankReport Run(const scenario::ScriptProgram& program, std::uint64_t seed, const RankPorts& ports);
RankReport Run(const ddp::TrainingProgram& program, std::uint64_t seed, const RankPorts& ports);
// Loads every epoch of the rank's shard, each batch followed by what the program says. Figures:
// batches, samples, distinct_samples, repeated_epochs (epochs in the order of the one before),
// load_seconds, load_seconds_max (of a batch), waited_seconds.
RankReport Run(const scenario::LoadingProgram& program, std::uint64_t seed, const RankPorts& ports);
// Figures: rounds, corrupt_rounds, overlapped_rounds (in which the two accesses that must not
// overlap did), round_us (median), and of the first wrong round: first_round, first_element,
// first_wrong_elements.
RankReport Run(const scenario::StreamRaceProgram& program, std::uint64_t seed,
               const RankPorts& ports);

// Every result of every round is compared. A collective that is to be skipped after the capture
// takes the whole replay with it.
RankReport Run(const scenario::GraphReplayProgram& program, std::uint64_t seed,
               const RankPorts& ports);

// Runs the workload to its end. Data are checked where the scenario promises right data. A kind of
// program without a Run of its own does not compile.
inline RankReport RunWorkload(const scenario::Scenario& scenario, std::uint64_t seed,
                              const RankPorts& ports) {
  return std::visit([&](const auto& program) { return Run(program, seed, ports); },
                    scenario.workload);
}

}  // namespace lockstep::stress::workloads
