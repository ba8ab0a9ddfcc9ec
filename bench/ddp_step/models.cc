#include "bench/ddp_step/models.h"

#include "datasets/manifest.h"
#include "datasets/model_tensors.h"

namespace lockstep::bench::ddp_step {
Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names) {
  std::vector<plan::PlannedModel> models;
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest, datasets::LoadManifest(name));
    for (const plan::PlannedModel& model : models) {
      if (model.name != manifest.name) continue;
      return InvalidInput("--model: {} is given twice; name each model once", manifest.name);
    }
    for (const datasets::ModelTensor& param : manifest.params) {
      if (!param.sparse && collective::IsComputeType(param.type)) continue;
      return InvalidInput(
          "--model {}: parameter {} is {}; a training step can be made of dense parameters of f16, "
          "bf16, f32 or f64 only",
          name, param.name, param.sparse ? "sparse" : collective::NameOf(param.type));
    }
    models.push_back({manifest.name, datasets::TensorsOf(manifest)});
  }
  return models;
}

}  // namespace lockstep::bench::ddp_step
