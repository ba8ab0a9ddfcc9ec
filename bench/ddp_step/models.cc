// From names to tensors, which agents plan with, and from tensors to models in the memory of a
// rank, which its cases share.
#include "bench/ddp_step/models.h"

#include <utility>

#include "core/base/check.h"
#include "datasets/model_tensors.h"

namespace lockstep::bench::ddp_step {

Result<std::vector<datasets::Manifest>> LoadManifests(const std::vector<std::string>& names) {
  std::vector<datasets::Manifest> manifests;
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(datasets::Manifest manifest, datasets::LoadManifest(name));
    for (const datasets::Manifest& known : manifests) {
      if (known.name != manifest.name) continue;
      return InvalidInput("--model: {} is given twice; name each model once", manifest.name);
    }
    manifests.push_back(std::move(manifest));
  }
  return manifests;
}

Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<datasets::Manifest> manifests, LoadManifests(names));
  std::vector<plan::PlannedModel> models;
  for (const datasets::Manifest& manifest : manifests) {
    for (const datasets::ModelTensor& param : manifest.params) {
      if (!param.sparse && collective::IsComputeType(param.type)) continue;
      return InvalidInput(
          "--model {}: parameter {} is {}; a training step can be made of dense parameters of f16, "
          "bf16, f32 or f64 only",
          manifest.name, param.name, param.sparse ? "sparse" : collective::NameOf(param.type));
    }
    models.push_back({manifest.name, datasets::TensorsOf(manifest)});
  }
  return models;
}

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
    ddp::ManifestModelOptions options{.rank = bench_.communicator.rank(), .low_rank = low_rank};
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
