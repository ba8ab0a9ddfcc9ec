// From a model's name and DDP's options to the sequence of all-reduces of one training iteration.
#ifndef LOCKSTEP_BENCH_COLLECTIVES_BUCKET_SEQUENCES_H_
#define LOCKSTEP_BENCH_COLLECTIVES_BUCKET_SEQUENCES_H_

#include <string>
#include <vector>

#include "bench/collectives/cases.h"
#include "core/base/status.h"

namespace lockstep::bench::collectives {

// The options as typed.
struct RawModelOptions {
  std::vector<std::string> models;
  std::vector<std::string> caps;  // MiB; empty: DDP's default
  std::string first;              // MiB; "": DDP's default
  bool find_unused = false;
  bool initial = false;
};

// One sequence for each model and cap. Errors: an unknown model, a malformed manifest, a bad cap.
Result<std::vector<BucketSequence>> ModelSequences(const RawModelOptions& raw);

}  // namespace lockstep::bench::collectives

#endif  // LOCKSTEP_BENCH_COLLECTIVES_BUCKET_SEQUENCES_H_
