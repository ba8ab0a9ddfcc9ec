// From the words of the command line to the axes of a sweep. These are sizes, types, reductions,
// placements, and the models whose buckets or state are measured.
#include "bench/collectives/collectives.h"

#include <fmt/core.h>

#include <memory>

#include "bench/collectives/cases.h"
#include "bench/collectives/steps.h"
#include "bench/ddp_step/models.h"
#include "bench/measure/option_values.h"
#include "core/ddp/buckets.h"
#include "datasets/manifest.h"

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
    measure::PutOnce(cap, caps, &Cap::mb);
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

// The sequence of all-reduces of one training iteration, for each model and cap. Errors: an unknown
// model or one that is named twice, a malformed manifest, a bad cap.
Result<std::vector<BucketSequence>> ModelSequences(const RawModelOptions& raw) {
  std::vector<BucketSequence> sequences;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Cap> caps, CapsOf(raw));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<datasets::Manifest> manifests,
                            ddp_step::LoadManifests(raw.models));
  for (const datasets::Manifest& manifest : manifests) {
    for (const Cap& cap : caps) {
      sequences.push_back(SequenceOf(manifest, cap, raw.initial));
    }
  }
  return sequences;
}

void AddAxisOptions(ArgumentParser& parser, const Program& program, RawOptions& raw) {
  if (program.reduces()) {
    parser.Add("-o,--op=WORD", raw.operations, "Reductions (sum prod min max, or all)")
        .SplitAtCommas()
        .ShowDefault();
  } else {
    parser.Refuse("-o,--op", fmt::format("{} reduces nothing", program.name));
  }
  if (!program.has_in_place()) {
    parser.Refuse("--placement", program.name + " measures out of place only");
    return;
  }
  parser.Add("--placement=WORD", raw.placement,
             fmt::format("Where results go (out, in: send == recv, or both; default {})",
                         program.in_place_by_default ? "in" : "out, both for nccl-tests"));
}

void AddBlockingOption(ArgumentParser& parser, RawOptions& raw) {
  parser.Add("-z,--blocking=WORD", raw.blocking,
             "The library's call (1: blocking, the default; 0: non-blocking; or both)");
}

void RefuseData(ArgumentParser& parser) {
  for (const char* names : {"-b,--minbytes", "-e,--maxbytes", "-i,--stepbytes", "-f,--stepfactor",
                            "-d,--datatype", "-o,--op", "--placement"}) {
    parser.Refuse(names, "a barrier has no data");
  }
}

void AddModelOptions(ArgumentParser& parser, const Program& program, RawOptions& raw) {
  const bool buckets = program.reduces();
  parser
      .Add("--model=NAME", raw.model.models,
           fmt::format("Models, by name or file ({} instead of sizes; give -b or -e for both)",
                       buckets ? "gradient buckets" : "state and buffers"))
      .SplitAtCommas();
  if (!buckets) return;
  parser.Add("--bucket-cap-mb=MIB", raw.model.caps, "DDP's bucket_cap_mb (one or several)")
      .SplitAtCommas();
  parser.Add("--first-bucket-mb=MIB", raw.model.first, "Limit of the first bucket");
  parser.Flag("--find-unused", raw.model.find_unused, "DDP's find_unused_parameters");
  parser.Flag("--initial", raw.model.initial, "The buckets of the first iteration");
}

Status ReadSweep(const ArgumentParser& parser, const RawOptions& raw, Axes& axes) {
  LOCKSTEP_RETURN_IF_ERROR(raw.sweep.Read(parser, axes.sizes, axes.types));
  axes.types_given = raw.sweep.types_given();
  const bool sizes_given = parser.Given("-b") || parser.Given("-e") || parser.Given("-i");
  axes.sweep = raw.model.models.empty() || sizes_given;
  return OkStatus();
}

Status ReadPlacement(const Program& program, bool both_by_default, const std::string& word,
                     std::vector<bool>& in_place) {
  if (word == "both" || (word.empty() && both_by_default)) {
    in_place = {false, true};
  } else if (word == "in" || word == "out" || word.empty()) {
    in_place = {word.empty() ? program.in_place_by_default : word == "in"};
  } else {
    return InvalidInput("--placement: '{}' is none of out, in, both", word);
  }
  return OkStatus();
}

Status ReadBlocking(const std::string& word, std::vector<collective::Blocking>& blocking) {
  if (word.empty() || word == "1") {
    blocking = {collective::Blocking::kBlocking};
  } else if (word == "0") {
    blocking = {collective::Blocking::kNonblocking};
  } else if (word == "both") {
    blocking = {collective::Blocking::kBlocking, collective::Blocking::kNonblocking};
  } else {
    return InvalidInput("-z: '{}' is none of 0, 1, both", word);
  }
  return OkStatus();
}

Status ReadReductions(const RawOptions& raw, Axes& axes) {
  axes.reductions.clear();
  for (const std::string& word : raw.operations) {
    if (word == "all") {
      axes.reductions = {collective::Reduction::kSum, collective::Reduction::kProd,
                         collective::Reduction::kMin, collective::Reduction::kMax};
      break;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const collective::Reduction reduction,
                              collective::ParseReduction("-o", word));
    measure::PutOnce(reduction, axes.reductions);
  }
  return OkStatus();
}

}  // namespace

void Collectives::AddOptions(ArgumentParser& parser) {
  if (program_.has_data()) {
    raw_.sweep.Add(parser);
    AddAxisOptions(parser, program_, raw_);
  } else {
    RefuseData(parser);
  }
  if (program_.has_root()) {
    parser.Add("-r,--root=RANK", axes_.root, "Root rank").ShowDefault();
  } else {
    parser.Refuse("-r,--root", name() + " has no root");
  }
  AddBlockingOption(parser, raw_);
  if (program_.takes_models) AddModelOptions(parser, program_, raw_);
}

Status Collectives::ReadOptions(const ArgumentParser& parser, measure::ReportFormat format,
                                plan::BenchSpec&) {
  axes_.collective = program_.collective;
  LOCKSTEP_RETURN_IF_ERROR(ReadSweep(parser, raw_, axes_));
  LOCKSTEP_RETURN_IF_ERROR(ReadReductions(raw_, axes_));
  const bool both =
      format == measure::ReportFormat::kNcclTests && program_.reduces() && program_.has_in_place();
  LOCKSTEP_RETURN_IF_ERROR(ReadPlacement(program_, both, raw_.placement, axes_.in_place));
  LOCKSTEP_RETURN_IF_ERROR(ReadBlocking(raw_.blocking, axes_.blocking));
  if (program_.reduces()) {
    LOCKSTEP_ASSIGN_OR_RETURN(axes_.sequences, ModelSequences(raw_.model));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(axes_.models, ddp_step::LoadModels(raw_.model.models));
  }
  return OkStatus();
}

// The coalesced broadcasts of a state are launched by the host, two at a time.
std::string Collectives::needs_host() const {
  return !axes_.models.empty() ? name() + " --model" : "";
}

measure::StepFactory Collectives::StepsOf(const measure::Bench& bench) const {
  const auto models = std::make_shared<ddp_step::ModelCache>(bench);
  return [&bench, models](std::uint32_t i) {
    return bench.plan.cases[i].step.name == StateBroadcast::kName
               ? MakeStateBroadcastStep(bench, i, *models)
               : MakeCollectiveStep(bench, i);
  };
}

}  // namespace lockstep::bench::collectives
