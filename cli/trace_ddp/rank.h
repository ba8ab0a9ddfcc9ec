// One rank of a traced program, on any communicator and device.
#pragma once

#include <functional>
#include <optional>

#include "cli/trace_ddp/run.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/training.h"
#include "core/device/device.h"
#include "core/device/kernels.h"

namespace lockstep::cli::trace_ddp {

// What all ranks have in common. `tensors`: of a model of datasets/; none: a small model.
struct TracedProgram {
  ddp::TrainingProgram program;
  std::optional<ddp::ModelTensors> tensors;
};

// Finds the model. kInvalidInput when there is no such model.
Result<TracedProgram> Prepare(const ddp::TrainingProgram& program);

// Writes what it is told to a trace.
class TraceRecorder final : public ddp::EngineObserver {
 public:
  explicit TraceRecorder(TracedRank& trace) : trace_(trace) {}
  void OnCollective(const collective::Operation& operation,
                    const journal::Annotation& annotation) override;
  void OnSection(const ddp::Section& section) override;
  void OnPhase(journal::Phase) override {}

 private:
  TracedRank& trace_;
  std::uint64_t next_sequence_ = 0;
};

struct TraceHost {
  comm::Communicator& communicator;
  device::Device& device;
  device::Kernels& kernels;
  std::function<Status(std::int64_t ns)> sleep;
  ddp::EngineObserver& observer;
  // Called at the end with what TraceRank returns, before streams, model and engine go; may leave
  // for good.
  std::function<void(const Status&)> over = [](const Status&) {};
};

inline constexpr const char* kNoMemory =
    "there is no memory for this program and its ranks; raise ulimit -v, or trace fewer ranks";

// Runs the program; its calls go to the observer, what it raised to `trace`. An error is of the
// environment.
Status TraceRank(const TracedProgram& traced, const TraceHost& host, TracedRank& trace);

// "collective 28, all_reduce f32 x 1 sum (join: alive of iteration 5)": the last of the trace.
std::string DescribeLastCall(const TracedRank& trace);

}  // namespace lockstep::cli::trace_ddp
