// A training loop on one rank, as PyTorch users write it: the `ddp_training` workload.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/engine.h"
#include "core/ddp/module.h"
#include "core/ddp/observer.h"

namespace lockstep::ddp {

// One value for all ranks, or one a rank (ranks beyond the list have the last one's).
template <typename T>
struct PerRank {
  std::vector<T> values;
  const T& At(int rank) const {
    const auto last = values.size() - 1;
    return values[static_cast<std::size_t>(rank) < last ? static_cast<std::size_t>(rank) : last];
  }
};

enum class BarrierPlace : std::uint8_t { kNone, kInLoop, kAfterLoop };
enum class AfterFinish : std::uint8_t { kExit, kLinger };

// Time that loading an input takes.
struct LoadTime {
  enum class Kind : std::uint8_t { kConstant, kUniform, kExponential };
  Kind kind = Kind::kConstant;
  double mean_us = 0;
  double spread_us = 0;  // kUniform: mean +- spread
};

// Inputs that follow from a DistributedSampler and a DataLoader.
struct SamplerProgram {
  std::int64_t samples = 0;
  std::int64_t batch = 1;
  bool shuffle = true;
  bool drop_last = false;
  bool set_epoch = true;
  std::uint64_t seed = 0;
};

// A block of evaluation inside or after the loop.
struct EvaluationProgram {
  enum class Through : std::uint8_t { kDdp, kModule };
  enum class Then : std::uint8_t { kTrain, kBarrier, kEnd };
  std::int64_t after_iteration = 2;  // of every epoch, from 0
  std::vector<int> ranks = {0};      // empty: all
  Through through = Through::kDdp;
  bool grad = false;
  bool train_mode = false;               // eval() was not called
  PerRank<std::int64_t> inputs = {{3}};  // of each rank that evaluates
  Then then = Then::kTrain;
};

// Every key of the workload and its default.
struct TrainingProgram {
  std::string model = "resnet50";
  std::int64_t epochs = 1;
  PerRank<std::int64_t> inputs = {{5}};
  std::int64_t extra_inputs_per_rank = 0;
  std::optional<SamplerProgram> sampler;  // overrides inputs
  bool join = false;
  bool join_throw = false;
  bool divide_by_initial_world_size = true;
  BarrierPlace barrier = BarrierPlace::kNone;
  BarrierKind barrier_kind = BarrierKind::kNative;
  bool broadcast_buffers = true;
  bool find_unused_parameters = false;
  bool static_graph = false;
  PerRank<char> branch = {{'b'}};                // two_branch: 'b' or 'c'
  std::vector<std::int64_t> no_sync_iterations;  // of every epoch
  BucketOptions buckets;  // cap_bytes, first_cap_bytes, rules; the other fields come from above
  CommHook comm_hook = CommHook::kNone;
  PowerSgdOptions power_sgd;
  PerRank<double> compute_us = {{0}};
  PerRank<LoadTime> load_us = {{LoadTime{}}};
  bool sync_batch_norm = false;
  AfterFinish after_finish = AfterFinish::kExit;  // for whoever runs the program
  std::optional<EvaluationProgram> evaluation;
  std::int64_t linear_rows = 2;  // linear_1_1: rows of ones in an input; 2 as in the recordings
  bool zero_grad = false;        // before every forward; false: gradients accumulate
  double deadline_seconds = 24 * 3600;
  std::uint64_t seed = 1;  // of the load times
  // Iterations, of all epochs, that were done before: a run that goes on where another one ended.
  std::int64_t first_iteration = 0;
};

// kInvalidInput, one line, for what cannot be run on `ranks` ranks.
Status ValidateProgram(const TrainingProgram& program, int ranks);
std::int64_t InputsOf(const TrainingProgram& program, int rank, int ranks);
EngineOptions EngineOptionsOf(const TrainingProgram& program);

// Where a rank is in the program; faults are placed by it.
struct TrainingPoint {
  enum class At : std::uint8_t {
    kInit,  // before the engine is constructed
    kEpoch,
    kLoad,  // before input `iteration` is loaded
    kForward,
    kBackward,
    kIterationEnd,
    kEvaluation,
    kJoinExit,
    kAfterLoop,
    kEnd,
  };
  At at = At::kInit;
  std::int64_t epoch = 0;
  std::int64_t iteration = 0;  // of this rank over all epochs
};

// What the loop asks of its surroundings. All calls come from the thread that runs the loop.
class TrainingSurroundings {
 public:
  virtual ~TrainingSurroundings() = default;
  // Passes time without using the processor (loading data).
  virtual Status Sleep(std::int64_t ns) = 0;
  // At every point, in order. An error ends the program as an exception of the user's would:
  // without join's exit.
  virtual Status Reach(const TrainingPoint& point) { return static_cast<void>(point), OkStatus(); }
};

// What happened on this rank. A rank that hangs returns nothing (its deadline does).
struct TrainingOutcome {
  Status status;        // ok: finished; kSystemFailed: raised; kDeadlineExceeded: waited too long
  TrainingPoint where;  // the last point it reached
  std::int64_t iterations = 0;  // completed
  // What a stream may still refer to when the program did not finish: keep it until the streams are
  // idle or gone.
  std::unique_ptr<Engine> engine = nullptr;
};

// Runs the program on one rank. The module is the one the program names; it outlives the call.
TrainingOutcome RunTraining(const TrainingProgram& program, Module& module,
                            const EnginePorts& ports, TrainingSurroundings& surroundings);

}  // namespace lockstep::ddp
