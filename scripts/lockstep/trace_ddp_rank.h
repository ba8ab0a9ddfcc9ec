// One rank of a traced program, on any communicator and device.
#ifndef LOCKSTEP_SCRIPTS_LOCKSTEP_TRACE_DDP_RANK_H_
#define LOCKSTEP_SCRIPTS_LOCKSTEP_TRACE_DDP_RANK_H_

#include <functional>
#include <optional>

#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/training.h"
#include "core/device/device.h"
#include "scripts/lockstep/trace_ddp_run.h"

namespace lockstep {

// What all ranks have in common. `tensors`: of a model of datasets/; none: a small model.
struct TracedProgram {
  TrainingProgram program;
  std::optional<ModelTensors> tensors;
};

// Finds the model. kInvalidInput when there is no such model.
Result<TracedProgram> Prepare(const TrainingProgram& program);

// Writes what it is told to a trace.
class TraceRecorder final : public EngineObserver {
 public:
  explicit TraceRecorder(TracedRank& trace) : trace_(trace) {}
  void OnCollective(const Operation& operation, const Annotation& annotation) override;
  void OnSection(const Section& section) override;
  void OnPhase(Phase) override {}

 private:
  TracedRank& trace_;
  std::uint64_t next_sequence_ = 0;
};

struct TraceHost {
  Communicator& communicator;
  Device& device;
  std::function<Status(std::int64_t ns)> sleep;
  EngineObserver& observer;
  // Called at the end, before streams, model and engine go; may leave for good.
  std::function<void()> over = [] {};
};

// Runs the program; its calls go to the observer, how it ended to `trace`. An error is of the
// environment.
Status TraceRank(const TracedProgram& traced, const TraceHost& host, TracedRank& trace);

// "collective 28, all_reduce f32 x 1 sum (join: alive of iteration 5)": the last of the trace.
std::string DescribeLastCall(const TracedRank& trace);

}  // namespace lockstep

#endif  // LOCKSTEP_SCRIPTS_LOCKSTEP_TRACE_DDP_RANK_H_
