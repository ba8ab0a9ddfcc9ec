// Models by name, as a plan carries them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/step.h"
#include "bench/plan/steps.h"
#include "core/base/status.h"
#include "core/ddp/journal_observer.h"
#include "core/ddp/launcher.h"
#include "core/ddp/manifest_model.h"
#include "datasets/manifest.h"

namespace lockstep::bench::ddp_step {

// Each once. Errors: as of LoadManifest; a model that is named twice, because cases are named by
// it.
Result<std::vector<datasets::Manifest>> LoadManifests(const std::vector<std::string>& names);

// The tensors of models, for steps. Errors: as of LoadManifests; a parameter that is sparse or no
// floating-point number, which no step can be made of.
Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names);

// Those of a plan as one rank has them, made when first needed and shared by the cases: their
// parameters, gradients and buffers, and the memory of the buckets.
class ModelCache {
 public:
  explicit ModelCache(const measure::Bench& bench) : bench_(bench), observer_(bench.communicator) {}

  // The gradients of matrices have rank 1 if `low_rank`. Errors: no memory.
  Result<ddp::ManifestModel*> Get(const std::string& name, bool low_rank);
  const ddp::ModelTensors& TensorsOf(const std::string& name) const;
  ddp::EnginePorts Ports();

 private:
  measure::Bench bench_;
  ddp::JournalObserver observer_;
  ddp::BucketMemory bucket_memory_;
  std::map<std::pair<std::string, bool>, std::unique_ptr<ddp::ManifestModel>> models_;
};

}  // namespace lockstep::bench::ddp_step
