// From a model's name and DDP's options to the sequence of all-reduces of one training iteration.
#ifndef LOCKSTEP_BENCH_HARNESS_MODEL_BUCKETS_H_
#define LOCKSTEP_BENCH_HARNESS_MODEL_BUCKETS_H_

#include <string>
#include <vector>

#include "bench/plan/spec.h"
#include "bench/plan/steps.h"
#include "core/base/status.h"

namespace lockstep::bench::harness {

// The options as typed.
struct ModelWords {
  std::vector<std::string> models;
  std::vector<std::string> caps;  // MiB; empty: DDP's default
  std::string first;              // MiB; "": DDP's default
  bool find_unused = false;
  bool initial = false;
};

// The tensors of models, for steps. Errors: as of LoadManifest; a parameter that is sparse or no
// floating-point number, which no step can be made of.
Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names);

// One sequence for each model and cap. Errors: an unknown model, a malformed manifest, a bad cap.
Result<std::vector<plan::BucketSequence>> ModelSequences(const ModelWords& words);

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_MODEL_BUCKETS_H_
