#include "bench/ddp_step/model_cache.h"

#include "core/base/check.h"

namespace lockstep::bench::ddp_step {

const ddp::ModelTensors& ModelCache::TensorsOf(const std::string& name) const {
  for (const plan::PlannedModel& model : bench_.plan.models) {
    if (model.name == name) return model.tensors;
  }
  LOCKSTEP_CHECK(false, "the plan has the models of its cases");
  return bench_.plan.models.front().tensors;
}

Result<ddp::ManifestModel*> ModelCache::Get(const std::string& name, bool low_rank) {
  std::unique_ptr<ddp::ManifestModel>& model = models_[{name, low_rank}];
  if (model == nullptr) {
    ddp::ManifestModelOptions options;
    options.rank = bench_.communicator.rank();
    options.low_rank = low_rank;
    LOCKSTEP_ASSIGN_OR_RETURN(
        model, ddp::ManifestModel::Make(TensorsOf(name), options, bench_.device, bench_.kernels));
  }
  return model.get();
}

ddp::EnginePorts ModelCache::Ports() {
  // Collectives run on a thread beside the one that computes, as PyTorch runs gloo; NCCL's stream
  // is the same thing on a device.
  return {bench_.communicator, bench_.device, bench_.kernels, bench_.stream,
          *bench_.side_stream, &observer_,    &bucket_memory_};
}

}  // namespace lockstep::bench::ddp_step
