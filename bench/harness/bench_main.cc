#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>

#include "bench/harness/bench_info.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/heir.h"
#include "bench/harness/lead.h"
#include "bench/harness/options.h"
#include "bench/harness/worker.h"
#include "bench/plan/plan.h"
#include "core/comm/backends.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "core/worker/worker_link.h"

namespace lockstep::bench::harness {
namespace {

// When a rank was quiet for so long it is asked whether anyone can go on. Longer than in `stress`:
// an agent that looks more often takes processor time from what is measured.
constexpr double kQuietSeconds = 0.1;

// Asks what the backend can do by its nature, before anything is started.
Status CheckBackend(const plan::Plan& plan, const comm::Backend& backend) {
  for (const plan::PlannedCase& planned : plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      LOCKSTEP_RETURN_IF_ERROR(
          backend.capabilities().supports(comm::AsSupported(backend, operation)));
    }
  }
  return OkStatus();
}

// One line on stderr, from the coordinator only: every agent finds the same mistake.
int Fail(const BenchInfo& info, int rank, const Status& status) {
  if (rank != 0) return 0;
  fmt::print(stderr, "{}: {}\n", info.name, status.message());
  return static_cast<int>(ExitCodeOf(status.code()));
}

coordinator::CoordinatorOptions CoordinatorOptionsOf(const BenchInfo& info,
                                                     const BenchOptions& options,
                                                     const control::LaunchContext& context,
                                                     const comm::Backend& backend,
                                                     const plan::Plan& plan,
                                                     const std::vector<std::string>& arguments) {
  coordinator::CoordinatorOptions coordinator;
  coordinator.workers_own_mpi = backend.uses_launcher_mpi;
  coordinator.mpi_on_threads = plan::CommunicatesOnThreads(plan);
  coordinator.silence_deadline_seconds = options.spec.deadline_seconds;
  coordinator.quiet_seconds = kQuietSeconds;
  coordinator.on_failover =
      Heir(info, options, context, plan, fmt::format("{}", fmt::join(arguments, " ")));
  coordinator.keep_data = true;
  if (!options.gpu_samples) coordinator.gpu_sample_seconds = 0;
  return coordinator;
}

Result<plan::Plan> Expand(BenchKind kind, const plan::BenchSpec& spec, int ranks) {
  switch (kind) {
    case BenchKind::kCollectives:
      return plan::ExpandPlan(spec, ranks);
    case BenchKind::kDdpSteps:
      return plan::ExpandDdpPlan(spec, ranks);
    case BenchKind::kLoads:
      return plan::ExpandLoadPlan(spec, ranks);
    case BenchKind::kLinks: {
      std::vector<int> all(static_cast<std::size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      return plan::ExpandLinkPlan(spec, ranks, all);
    }
  }
  return plan::ExpandPlan(spec, ranks);
}

// From the options to the exit code of this agent. Errors: input and environment.
Result<ExitCode> RunAgent(const BenchInfo& info, const BenchOptions& options,
                          const control::LaunchContext& context,
                          std::vector<std::string> arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const plan::Plan all, Expand(info.kind, options.spec, context.size));
  LOCKSTEP_ASSIGN_OR_RETURN(const comm::Backend* backend,
                            comm::FindBackend("--backend", all.backend));
  LOCKSTEP_RETURN_IF_ERROR(CheckBackend(all, *backend));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const BenchmarkSelection selection,
      SelectCases(arguments[0], all, options.benchmark_flags, context.rank == 0));
  if (selection.listed) return ExitCode::kPass;
  const plan::Plan plan = plan::Select(all, selection.cases);
  const coordinator::CoordinatorOptions coordinator =
      CoordinatorOptionsOf(info, options, context, *backend, plan, arguments);
  if (context.rank != 0) return coordinator::Follow(context, coordinator);
  return Leader(info, options, selection, plan, context, coordinator, std::move(arguments)).Run();
}

int RunAgent(const BenchInfo& info, int argc, char** argv) {
  const Result<control::LaunchContext> context = control::DetectLaunch();
  if (!context.ok()) return Fail(info, 0, context.status());
  const Result<CommandLine> line = ParseCommandLine(info, argc, argv);
  if (!line.ok()) return Fail(info, context->rank, line.status());
  if (!line->options) {
    if (context->rank == 0) fmt::print("{}", line->text);
    return 0;
  }
  const Result<ExitCode> code =
      RunAgent(info, *line->options, *context, std::vector<std::string>(argv, argv + argc));
  return code.ok() ? static_cast<int>(*code) : Fail(info, context->rank, code.status());
}

}  // namespace

int BenchMain(const BenchInfo& info, int argc, char** argv) {
  return worker::WorkerLink::IsWorker() ? RunWorker() : RunAgent(info, argc, argv);
}

}  // namespace lockstep::bench::harness
