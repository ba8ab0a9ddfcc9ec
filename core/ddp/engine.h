// PyTorch's DistributedDataParallel as it communicates: which collectives, in which order, from
// which memory, and what becomes of the gradients. Knows only the ports of communicator and device.
// Source of the rules: pytorch torch/csrc/distributed/c10d/reducer.cpp,
// torch/nn/parallel/distributed.py and torch/distributed/algorithms/join.py (1.13.1 and 2.6.0).
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/ddp/coalesced_broadcast.h"
#include "core/ddp/engine_options.h"
#include "core/ddp/host_values.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"
#include "core/ddp/reducer.h"

namespace lockstep::ddp {

// One rank's DDP(module). One thread drives it. An error of any verb, Construct included: what
// PyTorch would raise, or what the library reports (both kSystemFailed), a deadline, or no memory.
// Then the engine is only destroyed, and not before its streams are idle or gone: what it launched
// still reads and writes its memory.
class Engine final : private ModuleCollectives {
 public:
  // Refuses modules that DDP refuses. Everything it is given outlives the engine.
  static Result<std::unique_ptr<Engine>> Make(Module& module, const EngineOptions& options,
                                              const EnginePorts& ports);
  // Does not wait.
  ~Engine() override = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

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
  void set_require_backward_grad_sync(bool require) { require_backward_grad_sync_ = require; }
  // optimizer.zero_grad(set_to_none=True).
  void ZeroGrad();

  // `with Join([ddp], …):` begins and ends.
  void EnterJoin(const JoinOptions& options);
  Status ExitJoin();

  Status Barrier(BarrierKind kind);
  // Waits until both streams are done.
  Status Synchronize();

  // Of annotations: the iteration that what follows belongs to; -1: none.
  void set_iteration(std::int32_t iteration) { launcher_.set_iteration(iteration); }
  // Since the last call (one iteration, usually); waits until all of it is done.
  Result<StepTimes> TakeStepTimes();
  // The buckets of the next backward pass, and whether they are the rebuilt ones.
  const BucketLayout& layout() const { return reducer_.layout(); }
  bool has_rebuilt_buckets() const { return reducer_.has_rebuilt(); }
  Launcher& launcher() { return launcher_; }

 private:
  // Where the compute stream was.
  enum Mark {
    kForwardBegin,
    kBuffersBegin,
    kBuffersEnd,
    kForwardEnd,
    kBackwardBegin,
    kComputeEnd,
    kBackwardEnd,
    kMarks
  };

  Engine(Module& module, const EngineOptions& options, const EnginePorts& ports)
      : module_(module), options_(options), launcher_(ports, options.deadline_seconds) {}

  int rank() const override { return launcher_.ports().communicator.rank(); }
  int size() const override { return launcher_.ports().communicator.size(); }
  Status AllGatherStatistics(int layer, const float* send, float* recv,
                             std::int64_t count) override;
  Status SumStatistics(int layer, float* values, std::int64_t count) override;

  Status VerifyParameterCount();
  Status VerifyShapes();
  Status BroadcastState(int root, Purpose purpose);
  Status NotifyJoin();
  Result<int> FindCommonRank(bool candidate, Purpose purpose);
  bool WillSyncBuffers();
  Status SyncBuffers(int root);
  Result<HostValues::Handle> LaunchFlag(float value, Purpose purpose);
  Result<bool> ShadowIteration();
  ModuleContext Context();
  void Reach(Mark mark);
  bool DelaysBackward() const;

  Module& module_;
  EngineOptions options_;
  Launcher launcher_;
  HostValues values_{launcher_};
  CoalescedBroadcast broadcast_{launcher_};
  Reducer reducer_{module_, options_, launcher_, values_};
  bool require_backward_grad_sync_ = true;
  JoinOptions join_;
  bool join_enabled_ = false;  // stays after the exit, as in PyTorch
  bool require_forward_param_sync_ = true;
  bool delay_queued_ = false;      // this forward's backward pass delays everything
  bool delay_was_queued_ = false;  // one did
  std::array<std::shared_ptr<device::Event>, kMarks> marks_;
};

}  // namespace lockstep::ddp
