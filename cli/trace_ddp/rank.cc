// What a rank of a traced program does, whatever it communicates with. It makes the model and runs
// the training loop of core/ddp. Then it copies the leading elements of all parameters and
// gradients.
#include "cli/trace_ddp/rank.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/collective/half.h"
#include "core/ddp/small_models.h"
#include "datasets/manifest.h"
#include "datasets/model_tensors.h"

namespace lockstep::cli::trace_ddp {
namespace {

class Surroundings final : public ddp::TrainingSurroundings {
 public:
  explicit Surroundings(const TraceHost& host) : host_(host) {}
  Status Sleep(std::int64_t ns) override { return host_.sleep(ns); }

 private:
  const TraceHost& host_;
};

template <typename T>
T Load(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

double Element(collective::DataType type, const void* data, std::int64_t index) {
  switch (type) {
    case collective::DataType::kF16:
      return collective::FloatFromF16(Load<std::uint16_t>(data, index));
    case collective::DataType::kBf16:
      return collective::FloatFromBf16(Load<std::uint16_t>(data, index));
    case collective::DataType::kF32:
      return Load<float>(data, index);
    case collective::DataType::kF64:
      return Load<double>(data, index);
    default:
      LOCKSTEP_CHECK(false, "parameters have a floating-point type");
  }
}

std::vector<double> Leading(const ddp::TensorInfo& info, const void* data) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < std::min(info.numel, kFinalElements); ++i) {
    values.push_back(Element(info.type, data, i));
  }
  return values;
}

std::vector<FinalTensor> FinalTensors(ddp::Module& module) {
  std::vector<FinalTensor> tensors;
  for (const ddp::Parameter& param : module.params()) {
    FinalTensor tensor = {param.info.name, Leading(param.info, param.data), std::nullopt};
    if (param.has_grad) tensor.gradient = Leading(param.info, param.grad);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<std::unique_ptr<ddp::Module>> MakeModule(const TracedProgram& traced,
                                                const TraceHost& host) {
  const ddp::TrainingProgram& program = traced.program;
  const int rank = host.communicator.rank();
  if (!traced.tensors) {
    return ddp::MakeSmallModel(program.model,
                               {.branch_c = program.branch.At(rank) == 'c',
                                .linear_rows = static_cast<int>(program.linear_rows),
                                .sync_batch_norm = program.sync_batch_norm,
                                .compute_us = program.compute_us.At(rank)},
                               host.kernels);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ddp::Module> module,
      ddp::ManifestModel::Make(*traced.tensors,
                               {.rank = rank,
                                .compute_us = program.compute_us.At(rank),
                                .sync_batch_norm = program.sync_batch_norm,
                                .low_rank = program.comm_hook == ddp::CommHook::kPowerSgd},
                               host.device, host.kernels));
  return module;
}

}  // namespace

void TraceRecorder::OnCollective(const collective::Operation& operation,
                                 const journal::Annotation& annotation) {
  if (trace_.sections.empty()) OnSection({ddp::SectionKind::kConstructor, 0});
  trace_.sections.back().calls.push_back({next_sequence_++, operation, annotation});
}

void TraceRecorder::OnSection(const ddp::Section& section) { trace_.sections.push_back({section}); }

Result<TracedProgram> Prepare(const ddp::TrainingProgram& program) {
  const auto& small = ddp::SmallModelNames();
  if (std::find(small.begin(), small.end(), program.model) != small.end()) {
    return TracedProgram{program, std::nullopt};
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest,
                            datasets::LoadManifest(program.model));
  return TracedProgram{program, datasets::TensorsOf(manifest)};
}

Status TraceRank(const TracedProgram& traced, const TraceHost& host, TracedRank& trace) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<ddp::Module> module, MakeModule(traced, host));
  ddp::TrainingOutcome outcome;  // outlives the streams, which may refer to what it holds
  const std::unique_ptr<device::Stream> compute = host.device.NewInlineStream();
  const std::unique_ptr<device::Stream> communication = host.device.NewStream();
  Surroundings surroundings(host);
  const ddp::EnginePorts ports = {host.communicator, host.device,    host.kernels,
                                  *compute,          *communication, &host.observer};
  outcome = ddp::RunTraining(traced.program, *module, ports, surroundings);
  const bool lacks = outcome.status.code() == StatusCode::kEnvironment;
  const Status environment = lacks ? outcome.status : OkStatus();
  if (!lacks) {
    trace.status = outcome.status;
    trace.tensors = FinalTensors(*module);
  }
  host.over(environment);
  return environment;
}

void EndWhereMemoryLacks() {
  std::set_new_handler([] {
    std::fflush(stdout);  // of programs before this one
    std::fprintf(stderr, "lockstep: %s\n", kNoMemory);
    _exit(static_cast<int>(ExitCode::kEnvironment));
  });
}

std::string_view NameOf(TraceEnd end) {
  constexpr std::string_view kNames[] = {"finished",  "failed",     "hung",     "suspected_hang",
                                         "timed_out", "lost_peers", "not_ended"};
  return kNames[static_cast<std::size_t>(end)];
}

ExitCode ExitCodeOf(const TracedRanks& ranks) {
  const auto ends = [&](std::initializer_list<TraceEnd> wanted) {
    return std::ranges::any_of(ranks, [&](const TracedRank& rank) {
      return std::ranges::find(wanted, rank.end) != wanted.end();
    });
  };
  if (ends({TraceEnd::kFailed, TraceEnd::kHung, TraceEnd::kSuspectedHang})) {
    return ExitCode::kFailed;
  }
  const bool open = ends({TraceEnd::kTimedOut, TraceEnd::kLostPeers, TraceEnd::kNotEnded});
  return open ? ExitCode::kInconclusive : ExitCode::kPass;
}

std::string DescribeLastCall(const TracedRank& trace) {
  for (auto section = trace.sections.rbegin(); section != trace.sections.rend(); ++section) {
    if (section->calls.empty()) continue;
    const TracedCall& call = section->calls.back();
    return fmt::format("collective {}, {} ({})", call.sequence,
                       collective::Describe(call.operation), journal::Describe(call.annotation));
  }
  return "no collective";
}

}  // namespace lockstep::cli::trace_ddp
