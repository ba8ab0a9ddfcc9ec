// The verbs of a DDP rank in PyTorch's order: buffers are broadcast before the forward pass,
// gradients are reduced in the backward pass. Reducer, hook and launcher do the work. Whether
// something blocks depends on the streams only, never on a question asked here.
#include "core/ddp/engine.h"

#include <fmt/core.h>

#include <cstddef>
#include <span>
#include <utility>

#include "core/base/check.h"
#include "core/ddp/engine_impl.h"

namespace lockstep::ddp {

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Make(Module& module, const EngineOptions& options,
                                             const EnginePorts& ports) {
  if (module.params().empty()) {
    return InvalidInput("DDP: the model has no parameters; nothing would be averaged");
  }
  for (const Parameter& param : module.params()) {
    if (!param.sparse) continue;
    return Unsupported(fmt::format(
        "DDP: parameter {} has a sparse gradient, which is not modelled; use a dense embedding",
        param.info.name));
  }
  return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(module, options, ports)));
}

Status Engine::Construct() { return impl_->Construct(); }
Status Engine::Forward(const Pass& pass) { return impl_->Forward(pass); }
Status Engine::ForwardModule(const Pass& pass) { return impl_->ForwardModule(pass); }
Status Engine::Backward() { return impl_->Backward(); }
Status Engine::ExitJoin() { return impl_->ExitJoin(); }

Status Engine::Synchronize() {
  const EnginePorts& ports = impl_->launcher.ports();
  LOCKSTEP_RETURN_IF_ERROR(ports.communication.Synchronize(impl_->launcher.deadline()));
  return impl_->launcher.Synchronize();
}

Status Engine::Barrier(BarrierKind kind) { return impl_->Barrier(kind); }
Result<StepTimes> Engine::TakeStepTimes() { return impl_->TakeStepTimes(); }
const BucketLayout& Engine::layout() const { return impl_->reducer.layout(); }
bool Engine::has_rebuilt_buckets() const { return impl_->reducer.has_rebuilt(); }
Launcher& Engine::launcher() { return impl_->launcher; }

void Engine::set_require_backward_grad_sync(bool require) {
  impl_->require_backward_grad_sync = require;
}

void Engine::ZeroGrad() {
  for (Parameter& param : impl_->module.params()) param.has_grad = false;
}

void Engine::EnterJoin(const JoinOptions& options) {
  impl_->join = options;
  impl_->join_enabled = true;
}

void Engine::set_iteration(std::int32_t iteration) { impl_->launcher.set_iteration(iteration); }

Engine::Impl::Impl(Module& the_module, const EngineOptions& the_options, const EnginePorts& ports)
    : module(the_module), options(the_options), launcher(ports, the_options.deadline_seconds) {}

ModuleContext Engine::Impl::Context() { return {launcher.ports().compute, this}; }

void Engine::Impl::Reach(Mark mark) {
  if (!launcher.keep_times()) return;
  marks_[mark] = launcher.NewEvent();
  launcher.ports().compute.Record(*marks_[mark]);
}

Status Engine::Impl::Forward(const Pass& pass) {
  Reach(kForwardBegin);
  const bool syncs = pass.grad && require_backward_grad_sync;
  if (syncs) reducer.PrepareForForward();
  if (join_enabled) LOCKSTEP_RETURN_IF_ERROR(NotifyJoin());
  if (pass.grad) LOCKSTEP_RETURN_IF_ERROR(reducer.RebuildBuckets());
  if (WillSyncBuffers()) {
    Reach(kBuffersBegin);
    int root = 0;
    if (join_enabled) {
      LOCKSTEP_ASSIGN_OR_RETURN(root, FindCommonRank(true, journal::Purpose::kJoinCommonRank));
    }
    LOCKSTEP_RETURN_IF_ERROR(SyncBuffers(root));
    Reach(kBuffersEnd);
  }
  if (join_enabled) {
    // Nobody here waits for it: only ranks that joined want to know.
    const float requires_sync = require_backward_grad_sync ? 1 : 0;
    LOCKSTEP_ASSIGN_OR_RETURN(const auto unread,
                              LaunchFlag(requires_sync, journal::Purpose::kJoinShouldSync));
    static_cast<void>(unread);
  }
  LOCKSTEP_RETURN_IF_ERROR(module.Forward(pass, Context()));
  require_forward_param_sync_ = syncs;
  if (syncs) LOCKSTEP_RETURN_IF_ERROR(reducer.PrepareForBackward(module.used()));
  delay_queued_ = DelaysBackward();
  Reach(kForwardEnd);
  return OkStatus();
}

// Whether the output of this forward goes through DDP's sink, which delays everything to the end.
bool Engine::Impl::DelaysBackward() const {
  if (!options.buckets.static_graph) return false;
  if (options.buckets.rules == TorchRules::k2_6) return !delay_was_queued_;
  return reducer.iterations() == 1;
}

Status Engine::Impl::ForwardModule(const Pass& pass) {
  delay_queued_ = false;
  return module.Forward(pass, Context());
}

Status Engine::Impl::Backward() {
  Reach(kBackwardBegin);
  LOCKSTEP_RETURN_IF_ERROR(
      module.Backward([this](int param) { return reducer.OnGradient(param); }, Context()));
  Reach(kComputeEnd);
  if (delay_queued_) delay_was_queued_ = true;
  LOCKSTEP_RETURN_IF_ERROR(reducer.FinishBackward(std::exchange(delay_queued_, false)));
  Reach(kBackwardEnd);
  return launcher.ports().compute.inline_execution() ? launcher.ports().compute.status()
                                                     : OkStatus();
}

bool Engine::Impl::WillSyncBuffers() {
  return require_forward_param_sync_ && options.broadcast_buffers && !module.buffers().empty();
}

Status Engine::Impl::SyncBuffers(int root) {
  std::vector<TensorRef> tensors;
  for (const ModuleBuffer& buffer : module.buffers()) {
    tensors.push_back({buffer.info.type, buffer.info.numel, buffer.data});
  }
  return broadcast.Run(tensors, root, journal::Purpose::kBufferBroadcast);
}

Status Engine::Impl::Barrier(BarrierKind kind) {
  if (kind == BarrierKind::kAllReduce) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto handle, LaunchFlag(0, journal::Purpose::kBarrier));
    return values.Read<float>(handle).status();
  }
  const collective::Operation operation = {.collective = collective::Collective::kBarrier};
  LOCKSTEP_ASSIGN_OR_RETURN(const Work work,
                            launcher.Launch(operation, {}, journal::Purpose::kBarrier));
  return launcher.WaitOnHost(work);
}

Status Engine::Impl::AllGatherStatistics(int layer, const float* send, float* recv,
                                         std::int64_t count) {
  const collective::Operation operation = {.collective = collective::Collective::kAllGather,
                                           .count = count};
  LOCKSTEP_ASSIGN_OR_RETURN(
      const Work work,
      launcher.Launch(operation, {send, recv}, journal::Purpose::kBatchNormForward, layer));
  return launcher.Wait(work);
}

Status Engine::Impl::SumStatistics(int layer, float* statistics, std::int64_t count) {
  const collective::Operation operation = {.collective = collective::Collective::kAllReduce,
                                           .count = count};
  LOCKSTEP_ASSIGN_OR_RETURN(const Work work,
                            launcher.Launch(operation, {statistics, statistics},
                                            journal::Purpose::kBatchNormBackward, layer));
  return launcher.Wait(work);
}

Result<HostValues::Handle> Engine::Impl::LaunchFlag(float value, journal::Purpose purpose) {
  const collective::Operation operation = {.collective = collective::Collective::kAllReduce,
                                           .count = 1};
  return values.Launch(operation, std::span<const float>(&value, 1), purpose);
}

Result<StepTimes> Engine::Impl::TakeStepTimes() {
  StepTimes times;
  LOCKSTEP_ASSIGN_OR_RETURN(times.collectives, launcher.TakeTimes());
  std::array<Ticks, kMarks> ticks{};
  for (std::size_t i = 0; i < marks_.size(); ++i) {
    if (marks_[i] == nullptr) continue;
    LOCKSTEP_RETURN_IF_ERROR(marks_[i]->Await(launcher.deadline()));
    ticks[i] = marks_[i]->ReachedAt();
    marks_[i].reset();
  }
  times.forward_begin = ticks[kForwardBegin];
  times.buffers_begin = ticks[kBuffersBegin];
  times.buffers_end = ticks[kBuffersEnd];
  times.forward_end = ticks[kForwardEnd];
  times.backward_begin = ticks[kBackwardBegin];
  times.backward_compute_end = ticks[kComputeEnd];
  times.backward_end = ticks[kBackwardEnd];
  return times;
}

}  // namespace lockstep::ddp
