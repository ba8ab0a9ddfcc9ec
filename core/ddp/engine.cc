// The verbs of a DDP rank in PyTorch's order: buffers are broadcast before the forward pass,
// gradients are reduced in the backward pass. Reducer, hook and launcher do the work. Whether
// something blocks depends on the streams only, never on a question asked here.
#include "core/ddp/engine.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::ddp {

Result<std::unique_ptr<Engine>> Engine::Make(Module& module, const EngineOptions& options,
                                             const EnginePorts& ports) {
  if (module.params().empty()) {
    return InvalidInput("DDP: the model has no parameters; nothing would be averaged");
  }
  for (const Parameter& param : module.params()) {
    if (!param.sparse) continue;
    return Unsupported(
        "DDP: parameter {} has a sparse gradient, which is not modelled; use a dense embedding",
        param.info.name);
  }
  return std::unique_ptr<Engine>(new Engine(module, options, ports));
}

Status Engine::Synchronize() {
  LOCKSTEP_RETURN_IF_ERROR(launcher_.ports().communication.Synchronize(launcher_.deadline()));
  return launcher_.Synchronize();
}

void Engine::ZeroGrad() {
  for (Parameter& param : module_.params()) param.has_grad = false;
}

void Engine::EnterJoin(const JoinOptions& options) {
  join_ = options;
  join_enabled_ = true;
}

ModuleContext Engine::Context() { return {launcher_.ports().compute, this}; }

void Engine::Reach(Mark mark) {
  if (!launcher_.keep_times()) return;
  marks_[mark] = launcher_.NewEvent();
  launcher_.ports().compute.Record(*marks_[mark]);
}

Status Engine::Forward(const Pass& pass) {
  Reach(kForwardBegin);
  const bool syncs = pass.grad && require_backward_grad_sync_;
  if (syncs) reducer_.PrepareForForward();
  if (join_enabled_) LOCKSTEP_RETURN_IF_ERROR(NotifyJoin());
  if (pass.grad) LOCKSTEP_RETURN_IF_ERROR(reducer_.RebuildBuckets());
  if (WillSyncBuffers()) {
    Reach(kBuffersBegin);
    int root = 0;
    if (join_enabled_) {
      LOCKSTEP_ASSIGN_OR_RETURN(root, FindCommonRank(true, Purpose::kJoinCommonRank));
    }
    LOCKSTEP_RETURN_IF_ERROR(SyncBuffers(root));
    Reach(kBuffersEnd);
  }
  if (join_enabled_) {
    // Nobody here waits for it: only ranks that joined want to know.
    const float requires_sync = require_backward_grad_sync_ ? 1 : 0;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto unread,
                              LaunchFlag(requires_sync, Purpose::kJoinShouldSync));
    static_cast<void>(unread);
  }
  LOCKSTEP_RETURN_IF_ERROR(module_.Forward(pass, Context()));
  require_forward_param_sync_ = syncs;
  if (syncs) LOCKSTEP_RETURN_IF_ERROR(reducer_.PrepareForBackward(module_.used()));
  delay_queued_ = DelaysBackward();
  Reach(kForwardEnd);
  return OkStatus();
}

// Whether the output of this forward goes through DDP's sink, which delays everything to the end.
bool Engine::DelaysBackward() const {
  if (!options_.buckets.static_graph) return false;
  if (options_.buckets.rules == TorchRules::k2_6) return !delay_was_queued_;
  return reducer_.iterations() == 1;
}

Status Engine::ForwardModule(const Pass& pass) {
  delay_queued_ = false;
  return module_.Forward(pass, Context());
}

Status Engine::Backward() {
  Reach(kBackwardBegin);
  LOCKSTEP_RETURN_IF_ERROR(
      module_.Backward([this](int param) { return reducer_.OnGradient(param); }, Context()));
  Reach(kComputeEnd);
  if (delay_queued_) delay_was_queued_ = true;
  LOCKSTEP_RETURN_IF_ERROR(reducer_.FinishBackward(std::exchange(delay_queued_, false)));
  Reach(kBackwardEnd);
  return launcher_.ports().compute.inline_execution() ? launcher_.ports().compute.status()
                                                      : OkStatus();
}

bool Engine::WillSyncBuffers() {
  return require_forward_param_sync_ && options_.broadcast_buffers && !module_.buffers().empty();
}

Status Engine::SyncBuffers(int root) {
  std::vector<TensorRef> tensors;
  for (const ModuleBuffer& buffer : module_.buffers()) {
    tensors.push_back({buffer.info.type, buffer.info.numel, buffer.data});
  }
  return broadcast_.Run(tensors, root, Purpose::kBufferBroadcast);
}

Status Engine::Barrier(BarrierKind kind) {
  if (kind == BarrierKind::kAllReduce) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto handle, LaunchFlag(0, Purpose::kBarrier));
    return values_.Read<float>(handle).status();
  }
  const Operation operation = {.collective = Collective::kBarrier};
  LOCKSTEP_ASSIGN_OR_RETURN(const Work work, launcher_.Launch(operation, {}, Purpose::kBarrier));
  return launcher_.WaitOnHost(work);
}

Status Engine::AllGatherStatistics(int layer, const float* send, float* recv, std::int64_t count) {
  const Operation operation = {.collective = Collective::kAllGather, .count = count};
  LOCKSTEP_ASSIGN_OR_RETURN(const Work work, launcher_.Launch(operation, {send, recv},
                                                              Purpose::kBatchNormForward, layer));
  return launcher_.Wait(work);
}

Status Engine::SumStatistics(int layer, float* statistics, std::int64_t count) {
  const Operation operation = {.collective = Collective::kAllReduce, .count = count};
  LOCKSTEP_ASSIGN_OR_RETURN(const Work work, launcher_.Launch(operation, {statistics, statistics},
                                                              Purpose::kBatchNormBackward, layer));
  return launcher_.Wait(work);
}

Result<HostValues::Handle> Engine::LaunchFlag(float value, Purpose purpose) {
  const Operation operation = {.collective = Collective::kAllReduce, .count = 1};
  return values_.Launch(operation, std::vector{value}, purpose);
}

Result<StepTimes> Engine::TakeStepTimes() {
  StepTimes times;
  LOCKSTEP_ASSIGN_OR_RETURN(times.collectives, launcher_.TakeTimes());
  static constexpr Ticks StepTimes::*kTimes[kMarks] = {
      &StepTimes::forward_begin, &StepTimes::buffers_begin,  &StepTimes::buffers_end,
      &StepTimes::forward_end,   &StepTimes::backward_begin, &StepTimes::backward_compute_end,
      &StepTimes::backward_end};  // by Mark
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i] == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(marks_[i]->Await(launcher_.deadline()));
    times.*kTimes[i] = marks_[i]->ReachedAt();
    marks_[i].reset();
  }
  return times;
}

}  // namespace lockstep::ddp
