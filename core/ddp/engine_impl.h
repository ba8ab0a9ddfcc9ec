// What an Engine is made of.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/ddp/coalesced_broadcast.h"
#include "core/ddp/engine.h"
#include "core/ddp/host_values.h"
#include "core/ddp/launcher.h"
#include "core/ddp/module.h"
#include "core/ddp/reducer.h"

namespace lockstep::ddp {

class Engine::Impl final : public ModuleCollectives {
 public:
  Impl(Module& module, const EngineOptions& options, const EnginePorts& ports);

  Status Construct();
  Status Forward(const Pass& pass);
  Status ForwardModule(const Pass& pass);
  Status Backward();
  Status ExitJoin();
  Status Barrier(BarrierKind kind);
  Result<StepTimes> TakeStepTimes();

  int rank() const override { return launcher.ports().communicator.rank(); }
  int size() const override { return launcher.ports().communicator.size(); }
  Status AllGatherStatistics(int layer, const float* send, float* recv,
                             std::int64_t count) override;
  Status SumStatistics(int layer, float* values, std::int64_t count) override;

  Module& module;
  EngineOptions options;
  Launcher launcher;
  HostValues values{launcher};
  CoalescedBroadcast broadcast{launcher};
  Reducer reducer{module, options, launcher, values};
  bool require_backward_grad_sync = true;
  JoinOptions join;
  bool join_enabled = false;  // stays after the exit, as in PyTorch

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

  Status VerifyParameterCount();
  Status VerifyShapes();
  Status BroadcastState(int root, journal::Purpose purpose);
  Status NotifyJoin();
  Result<int> FindCommonRank(bool candidate, journal::Purpose purpose);
  bool WillSyncBuffers();
  Status SyncBuffers(int root);
  Result<HostValues::Handle> LaunchFlag(float value, journal::Purpose purpose);
  Result<bool> ShadowIteration();
  ModuleContext Context();
  void Reach(Mark mark);
  bool DelaysBackward() const;

  bool require_forward_param_sync_ = true;
  bool delay_queued_ = false;      // this forward's backward pass delays everything
  bool delay_was_queued_ = false;  // one did
  std::array<std::shared_ptr<device::Event>, kMarks> marks_;
};

}  // namespace lockstep::ddp
