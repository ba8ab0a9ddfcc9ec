// Trains a small model with the engine of core/ddp, passes every point through the gate of faults,
// and reports a print of the gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/ddp/journal_observer.h"
#include "core/ddp/linear_gradient.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/small_models.h"
#include "core/ddp/training.h"
#include "datasets/manifest.h"
#include "datasets/model_tensors.h"
#include "fmt/format.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::workloads {
namespace {

using At = ddp::TrainingPoint::At;

bool IsSmall(const ddp::TrainingProgram& program) {
  const auto& names = ddp::SmallModelNames();
  return std::find(names.begin(), names.end(), program.model) != names.end();
}

std::string_view NameOf(At at) {
  static constexpr std::string_view kNames[] = {"init",       "epoch",   "load",       "forward",
                                                "backward",   "compute", "evaluation", "join_exit",
                                                "after_loop", "finalize"};
  return kNames[static_cast<std::size_t>(at)];
}

class Surroundings final : public ddp::TrainingSurroundings {
 public:
  explicit Surroundings(const RankPorts& ports) : ports_(ports) {}
  Status Sleep(std::int64_t ns) override { return ports_.body.Sleep(ns); }
  Status Reach(const ddp::TrainingPoint& point) override {
    using Moment = faults::FaultMoment::Kind;
    faults::FaultGate& gate = ports_.gate;
    if (point.at == At::kEpoch) return gate.Reach(Moment::kEpoch, point.epoch);
    if (point.at == At::kLoad) return gate.Reach(Moment::kIteration, point.iteration);
    if (point.at == At::kBackward) return gate.Reach(Moment::kBackward, point.iteration);
    return point.at == At::kJoinExit ? gate.Reach(Moment::kBeforeJoinExit) : OkStatus();
  }

 private:
  const RankPorts& ports_;
};

Result<std::unique_ptr<ddp::Module>> MakeModule(const ddp::TrainingProgram& program,
                                                const RankPorts& ports) {
  const int rank = ports.world.rank();
  if (IsSmall(program)) {
    return ddp::MakeSmallModel(program.model,
                               {.branch_c = program.branch.At(rank) == 'c',
                                .linear_rows = static_cast<int>(program.linear_rows),
                                .sync_batch_norm = program.sync_batch_norm,
                                .compute_us = program.compute_us.At(rank)},
                               ports.kernels, &ports.device);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const datasets::Manifest manifest,
                            datasets::LoadManifest(program.model));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ddp::Module> module,
      ddp::ManifestModel::Make(datasets::TensorsOf(manifest),
                               {.rank = rank,
                                .compute_us = program.compute_us.At(rank),
                                .sync_batch_norm = program.sync_batch_norm,
                                .low_rank = program.comm_hook == ddp::CommHook::kPowerSgd},
                               ports.device, ports.kernels));
  return module;
}

// Whether every rank has the same averaged gradients in the end: all did the same iterations, all
// of them synchronized, all with the same graph, and no hook changed the values.
bool PromisesEqualGradients(const ddp::TrainingProgram& program, int ranks) {
  // What holds of the first rank that is not listed holds of all that follow.
  const auto listed = std::max(program.inputs.values.size(), program.branch.values.size());
  for (int rank = 1; rank < std::min(ranks, static_cast<int>(listed) + 1); ++rank) {
    if (ddp::InputsOf(program, rank, ranks) != ddp::InputsOf(program, 0, ranks)) return false;
    if (program.branch.At(rank) != program.branch.At(0)) return false;
  }
  return program.no_sync_iterations.empty() && !program.evaluation;
}

// With no hook that rounds, the gradients of a manifest's model are known. Each epoch has the same
// inputs again, of which the sum over epochs is not worked out.
bool PromisesKnownGradients(const ddp::TrainingProgram& program, int ranks) {
  return PromisesEqualGradients(program, ranks) && !IsSmall(program) &&
         (program.epochs == 1 || program.zero_grad) &&
         (program.comm_hook == ddp::CommHook::kNone ||
          program.comm_hook == ddp::CommHook::kAllReduce);
}

void CheckLinearGradient(const ddp::LinearGradient& expected, int ranks, ddp::Module& module,
                         RankReport& report) {
  // Where it is not exact, both sums round as often as there are terms, in each iteration.
  const double roundings = 2.0 * static_cast<double>(report.completed) * (ranks + 2);
  const double tolerance =
      expected.exact ? 0.0 : roundings * std::numeric_limits<float>::epsilon() / 2 * expected.value;
  for (const ddp::Parameter& param : module.params()) {
    const float got = param.has_grad ? *static_cast<const float*>(param.grad) : 0;
    ++report.checked;
    if (std::abs(got - expected.value) <= tolerance) continue;
    report.wrong_data =
        fmt::format("the gradient of {} is {}, not {}", param.info.name, got, expected.value);
  }
}

std::string Fingerprint(ddp::Module& module, const std::function<void()>& alive) {
  std::uint64_t hash = 1;
  for (const ddp::Parameter& param : module.params()) {
    alive();
    hash = Mix64(hash + (param.has_grad ? 1 : 0));
    if (!param.has_grad) continue;
    const auto* bytes = static_cast<const unsigned char*>(param.grad);
    for (std::int64_t i = 0; i < param.info.bytes(); ++i) {
      hash = (hash ^ bytes[i]) * 0x100000001b3u;  // FNV-1a's step
    }
  }
  return fmt::format("{:016x}", Mix64(hash));
}

struct Kept {
  std::unique_ptr<ddp::Module> module;
  std::unique_ptr<ddp::Engine> engine;
};

// A rank that checks on a busy machine is not silent: `alive`.
void CheckGradients(const ddp::TrainingProgram& program, ddp::Module& module, int rank, int ranks,
                    const std::function<void()>& alive, RankReport& report) {
  if (const auto expected = ddp::ExpectedLinear(program, rank, ranks)) {
    CheckLinearGradient(*expected, ranks, module, report);
  }
  if (!PromisesEqualGradients(program, ranks)) return;
  report.gradients = Fingerprint(module, alive);
  if (!PromisesKnownGradients(program, ranks)) return;
  const std::int64_t iterations = report.iteration + 1;
  // Zeroed before every forward pass, they are those of the last one.
  const std::int64_t run = iterations - program.first_iteration;
  if (run <= 0) return;  // no input, no gradient
  const std::int64_t inputs = program.zero_grad ? 1 : run;
  const std::int64_t last = (iterations - 1) % ddp::InputsOf(program, rank, ranks);
  const ddp::GradientCheck check = ddp::CheckMeanGradients(static_cast<ddp::ManifestModel&>(module),
                                                           ranks, last + 1 - inputs, inputs,
                                                           /*tolerance=*/0, alive);
  report.checked = check.compared;
  if (check.wrong > 0) {
    report.wrong_data =
        fmt::format("{} of {} gradients are wrong: {}", check.wrong, check.compared, check.first);
  }
}

template <typename T>
void KeepMembers(const std::vector<int>& members, ddp::PerRank<T>& per_rank) {
  if (per_rank.values.size() < 2 || members.empty()) return;
  std::vector<T> kept;
  for (const int rank : members) kept.push_back(per_rank.At(rank));
  per_rank.values = std::move(kept);
}

// Ranks are named by their places in the new communicator. Where none is left, nobody evaluates.
void KeepMembers(const std::vector<int>& members,
                 std::optional<ddp::EvaluationProgram>& evaluation) {
  if (!evaluation || members.empty()) return;
  KeepMembers(members, evaluation->inputs);
  if (evaluation->ranks.empty()) return;  // all
  std::vector<int> kept;
  for (std::size_t place = 0; place < members.size(); ++place) {
    const bool evaluates =
        std::ranges::find(evaluation->ranks, members[place]) != evaluation->ranks.end();
    if (evaluates) kept.push_back(static_cast<int>(place));
  }
  evaluation->ranks = std::move(kept);
  if (evaluation->ranks.empty()) evaluation.reset();
}

// What is given by rank goes with the rank into its new communicator.
ddp::TrainingProgram ProgramOf(const ddp::TrainingProgram& as_written, const RankPorts& ports) {
  ddp::TrainingProgram program = as_written;
  program.first_iteration = ports.first_iteration;
  KeepMembers(ports.members, program.inputs);
  KeepMembers(ports.members, program.branch);
  KeepMembers(ports.members, program.compute_us);
  KeepMembers(ports.members, program.load_us);
  KeepMembers(ports.members, program.evaluation);
  return program;
}

// A process that was started anew has lost what it had learned.
void ForgetParameters(ddp::Module& module) {
  for (ddp::Parameter& param : module.params()) {
    std::memset(param.data, 0xff, static_cast<std::size_t>(param.info.bytes()));
  }
}

// After a recovery every rank has the parameters of rank 0, which one of them was not started with.
void CheckParameters(ddp::Module& module, RankReport& report) {
  for (const ddp::Parameter& param : module.params()) {
    const auto* bytes = static_cast<const unsigned char*>(param.data);
    const bool forgotten =
        param.info.bytes() > 0 && std::all_of(bytes, bytes + param.info.bytes(),
                                              [](unsigned char byte) { return byte == 0xff; });
    if (!forgotten || !report.wrong_data.empty()) continue;
    report.wrong_data = fmt::format(
        "the parameter {} did not come from rank 0 when the ranks resumed", param.info.name);
  }
}

}  // namespace

RankReport Run(const ddp::TrainingProgram& as_written, std::uint64_t, const RankPorts& ports) {
  const ddp::TrainingProgram program = ProgramOf(as_written, ports);
  RankReport report;
  report.where = "init";
  ports.recorded.EnterPhase(journal::Phase::kAllocate);
  Result<std::unique_ptr<ddp::Module>> module = MakeModule(program, ports);
  if (!module.ok()) {
    report.status = module.status();
    return report;
  }
  if (ports.restarted && ports.world.rank() != 0) ForgetParameters(**module);
  ddp::JournalObserver observer(ports.recorded);
  Surroundings surroundings(ports);
  const ddp::EnginePorts engine = {ports.world,   ports.device,        ports.kernels,
                                   ports.compute, ports.communication, &observer};
  ddp::TrainingOutcome outcome = ddp::RunTraining(program, **module, engine, surroundings);
  report.status = outcome.status;
  report.where = std::string(NameOf(outcome.where.at));
  report.iteration = outcome.iterations - 1;
  report.completed = outcome.iterations;
  if (outcome.status.ok() && ports.world.capabilities().moves_data) {
    const auto alive = [&ports] { ports.recorded.EnterPhase(journal::Phase::kCheck); };
    CheckGradients(program, **module, ports.world.rank(), ports.world.size(), alive, report);
  }
  if (outcome.status.ok() && !ports.members.empty()) CheckParameters(**module, report);
  report.kept = std::make_shared<Kept>(Kept{std::move(*module), std::move(outcome.engine)});
  return report;
}

}  // namespace lockstep::stress::workloads
