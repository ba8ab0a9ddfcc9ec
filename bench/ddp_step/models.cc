#include "bench/harness/model_buckets.h"

#include <fmt/core.h>

#include <optional>

#include "core/ddp/buckets.h"
#include "datasets/manifest.h"
#include "datasets/model_tensors.h"

namespace lockstep::bench::harness {
namespace {

struct Cap {
  double mb;  // as typed: for names
  ddp::BucketOptions options;
};

Result<std::vector<Cap>> CapsOf(const ModelWords& words) {
  ddp::BucketOptions base;
  base.find_unused_parameters = words.find_unused;
  if (!words.first.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(base.first_cap_bytes,
                              ddp::ParseBucketMb("--first-bucket-mb", words.first));
  }
  if (words.caps.empty()) return std::vector<Cap>{{25, base}};
  std::vector<Cap> caps;
  for (const std::string& word : words.caps) {
    Cap cap{0, base};
    LOCKSTEP_ASSIGN_OR_RETURN(cap.options.cap_bytes, ddp::ParseBucketMb("--bucket-cap-mb", word));
    cap.mb = static_cast<double>(*cap.options.cap_bytes) / (1024 * 1024);
    caps.push_back(cap);
  }
  return caps;
}

plan::BucketSequence SequenceOf(const datasets::Manifest& manifest, const Cap& cap, bool initial) {
  const std::vector<ddp::Gradient> gradients = datasets::GradientsOf(manifest);
  const ddp::BucketLayout layout =
      initial ? ddp::InitialBuckets(gradients, cap.options)
              : ddp::SteadyBuckets(gradients, manifest.ready_order, cap.options);
  plan::BucketSequence sequence{manifest.name, cap.mb, {}};
  for (const ddp::Bucket& bucket : layout)
    sequence.buckets.push_back({bucket.elements, bucket.type});
  return sequence;
}

}  // namespace

Result<std::vector<plan::PlannedModel>> LoadModels(const std::vector<std::string>& names) {
  std::vector<plan::PlannedModel> models;
  for (const std::string& name : names) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest, datasets::LoadManifest(name));
    for (const plan::PlannedModel& model : models) {
      if (model.name != manifest.name) continue;
      return InvalidInput(
          fmt::format("--model: {} is given twice; name each model once", manifest.name));
    }
    for (const datasets::ModelTensor& param : manifest.params) {
      if (!param.sparse && collective::IsComputeType(param.type)) continue;
      return InvalidInput(fmt::format(
          "--model {}: parameter {} is {}; a training step can be made of dense parameters "
          "of f16, bf16, f32 or f64 only",
          name, param.name, param.sparse ? "sparse" : collective::NameOf(param.type)));
    }
    models.push_back({manifest.name, datasets::TensorsOf(manifest)});
  }
  return models;
}

Result<std::vector<plan::BucketSequence>> ModelSequences(const ModelWords& words) {
  std::vector<plan::BucketSequence> sequences;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Cap> caps, CapsOf(words));
  for (const std::string& model : words.models) {
    LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest, datasets::LoadManifest(model));
    for (const Cap& cap : caps) {
      sequences.push_back(SequenceOf(manifest, cap, words.initial));
    }
  }
  return sequences;
}

}  // namespace lockstep::bench::harness
