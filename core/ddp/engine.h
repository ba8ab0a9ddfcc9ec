// PyTorch's DistributedDataParallel as it communicates: which collectives, in which order, from
// which memory, and what becomes of the gradients. Knows only the ports of communicator and device.
// Source of the rules: pytorch torch/csrc/distributed/c10d/reducer.cpp,
// torch/nn/parallel/distributed.py and torch/distributed/algorithms/join.py (1.13.1 and 2.6.0).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/buckets.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"
#include "core/ddp/observer.h"

namespace lockstep::ddp {

enum class CommHook : std::uint8_t { kNone, kAllReduce, kFp16, kBf16, kPowerSgd };
// "none", "all_reduce", "fp16", "bf16", "powersgd". Errors name `option`, the text and these.
Result<CommHook> ParseCommHook(std::string_view option, std::string_view text);
std::string_view NameOf(CommHook hook);

// powerSGD_hook's state, with PyTorch's defaults.
struct PowerSgdOptions {
  int rank = 1;  // matrix_approximation_rank
  std::int64_t start_iteration = 1000;
  double min_compression_rate = 2;
  bool error_feedback = true;
  bool warm_start = true;
  std::uint64_t seed = 0;
};

struct JoinOptions {
  bool divide_by_initial_world_size = true;
  bool throw_on_early_termination = false;
};

enum class BarrierKind : std::uint8_t {
  kNative,     // the communicator's barrier
  kAllReduce,  // an all-reduce of one f32, as PyTorch does on NCCL
};

struct EngineOptions {
  BucketOptions buckets;
  bool broadcast_buffers = true;
  CommHook hook = CommHook::kNone;
  PowerSgdOptions power_sgd;
  double deadline_seconds = 24 * 3600;  // of every wait on the host
};

// Times of an iteration in ticks of the device; Ticks 0: it had no such part.
struct StepTimes {
  Ticks forward_begin = 0;  // before DDP's own work
  Ticks buffers_begin = 0;  // the blocking part of the buffer broadcast
  Ticks buffers_end = 0;
  Ticks forward_end = 0;
  Ticks backward_begin = 0;
  Ticks backward_compute_end = 0;            // the last gradient is computed and in its bucket
  Ticks backward_end = 0;                    // gradients are averaged and copied back
  std::vector<CollectiveTimes> collectives;  // in launch order
};

// One rank's DDP(module). One thread drives it. An error of any verb, Construct included: what
// PyTorch would raise, or what the library reports (both kSystemFailed), a deadline, or no memory.
// Then the engine is only destroyed, and not before its streams are idle or gone: what it launched
// still reads and writes its memory.
class Engine {
 public:
  // Refuses modules that DDP refuses. Everything it is given outlives the engine.
  static Result<std::unique_ptr<Engine>> Make(Module& module, const EngineOptions& options,
                                              const EnginePorts& ports);
  ~Engine();  // does not wait

  // DDP.__init__: checks that the ranks have the same parameters, broadcasts rank 0's state.
  // Collective, and the first verb.
  Status Construct();

  // ddp(x) and ddp.module(x), under no_grad if pass.grad is false.
  Status Forward(const Pass& pass);
  Status ForwardModule(const Pass& pass);
  // loss.backward() of the last forward; returns when the averaged gradients are there for later
  // work of the compute stream.
  Status Backward();
  // no_sync() is false.
  void set_require_backward_grad_sync(bool require);
  // optimizer.zero_grad(set_to_none=True).
  void ZeroGrad();

  // `with Join([ddp], …):` begins and ends.
  void EnterJoin(const JoinOptions& options);
  Status ExitJoin();

  Status Barrier(BarrierKind kind);
  // Waits until both streams are done.
  Status Synchronize();

  // Of annotations: the iteration that what follows belongs to; -1: none.
  void set_iteration(std::int32_t iteration);
  // Since the last call (one iteration, usually); waits until all of it is done.
  Result<StepTimes> TakeStepTimes();
  // The buckets of the next backward pass, and whether they are the rebuilt ones.
  const BucketLayout& layout() const;
  bool has_rebuilt_buckets() const;
  Launcher& launcher();

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::ddp
