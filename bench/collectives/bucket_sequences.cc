// The gradient buckets of models, as DDP's rules cut them (core/ddp/buckets.h): what
// bench_allreduce
// --model measures.
#include "bench/collectives/bucket_sequences.h"

#include <optional>

#include "core/ddp/buckets.h"
#include "datasets/manifest.h"
#include "datasets/model_tensors.h"

namespace lockstep::bench::collectives {
namespace {

struct Cap {
  double mb;  // as typed: for names
  ddp::BucketOptions options;
};

Result<std::vector<Cap>> CapsOf(const RawModelOptions& raw) {
  ddp::BucketOptions base;
  base.find_unused_parameters = raw.find_unused;
  if (!raw.first.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(base.first_cap_bytes,
                              ddp::ParseBucketMb("--first-bucket-mb", raw.first));
  }
  if (raw.caps.empty()) return std::vector<Cap>{{25, base}};
  std::vector<Cap> caps;
  for (const std::string& word : raw.caps) {
    Cap cap{0, base};
    LOCKSTEP_ASSIGN_OR_RETURN(cap.options.cap_bytes, ddp::ParseBucketMb("--bucket-cap-mb", word));
    cap.mb = static_cast<double>(*cap.options.cap_bytes) / (1024 * 1024);
    caps.push_back(cap);
  }
  return caps;
}

BucketSequence SequenceOf(const datasets::Manifest& manifest, const Cap& cap, bool initial) {
  const std::vector<ddp::Gradient> gradients = datasets::GradientsOf(manifest);
  const ddp::BucketLayout layout =
      initial ? ddp::InitialBuckets(gradients, cap.options)
              : ddp::SteadyBuckets(gradients, manifest.ready_order, cap.options);
  BucketSequence sequence{manifest.name, cap.mb, {}};
  for (const ddp::Bucket& bucket : layout)
    sequence.buckets.push_back({bucket.elements, bucket.type});
  return sequence;
}

}  // namespace

Result<std::vector<BucketSequence>> ModelSequences(const RawModelOptions& raw) {
  std::vector<BucketSequence> sequences;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Cap> caps, CapsOf(raw));
  for (const std::string& model : raw.models) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest, datasets::LoadManifest(model));
    for (const Cap& cap : caps) {
      sequences.push_back(SequenceOf(manifest, cap, raw.initial));
    }
  }
  return sequences;
}

}  // namespace lockstep::bench::collectives
