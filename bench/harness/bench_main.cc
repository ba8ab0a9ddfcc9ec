// What a benchmark's process does: that of an agent leads or follows a launch, that of a worker
// measures. Both are the same program with the same kind; only agents parse the command line.
#include "bench/harness/bench_main.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bench/harness/failover.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/lead.h"
#include "bench/harness/options.h"
#include "bench/harness/worker.h"
#include "bench/plan/plan.h"
#include "core/comm/backends.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/follower.h"
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
int Fail(const measure::Kind& kind, int rank, const Status& status) {
  if (rank != 0) return 0;
  fmt::print(stderr, "{}: {}\n", kind.name(), status.message());
  return static_cast<int>(ExitCodeOf(status.code()));
}

coordinator::CoordinatorOptions CoordinatorOptionsOf(const measure::Kind& kind,
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
      Failover(kind.name(), options, context, plan, fmt::format("{}", fmt::join(arguments, " ")));
  coordinator.keep_data = true;
  if (!options.gpu_samples) coordinator.gpu_sample_seconds = 0;
  return coordinator;
}

// From the options to the exit code of this agent. Errors: input and environment.
Result<ExitCode> RunAgent(const measure::Kind& kind, const BenchOptions& options,
                          const control::LaunchContext& context,
                          std::vector<std::string> arguments) {
  LOCKSTEP_ASSIGN_OR_RETURN(const plan::Plan all, kind.Expand(options.spec, context.size));
  LOCKSTEP_ASSIGN_OR_RETURN(const comm::Backend* backend,
                            comm::FindBackend("--backend", all.backend));
  LOCKSTEP_RETURN_IF_ERROR(CheckBackend(all, *backend));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const BenchmarkSelection selection,
      SelectCases(arguments[0], all, options.benchmark_flags, context.rank == 0));
  if (selection.listed) return ExitCode::kPass;
  const plan::Plan plan = plan::Select(all, selection.cases);
  const coordinator::CoordinatorOptions coordinator =
      CoordinatorOptionsOf(kind, options, context, *backend, plan, arguments);
  if (context.rank != 0) return coordinator::Follow(context, coordinator);
  return Leader(kind, options, selection, plan, context, coordinator, std::move(arguments)).Run();
}

int RunAgent(measure::Kind& kind, int argc, char** argv) {
  const Result<control::LaunchContext> context = control::DetectLaunch();
  if (!context.ok()) return Fail(kind, 0, context.status());
  const Result<CommandLine> line = ParseCommandLine(kind, argc, argv);
  if (!line.ok()) return Fail(kind, context->rank, line.status());
  if (!line->options) {
    if (context->rank == 0) fmt::print("{}", line->text);
    return 0;
  }
  const Result<ExitCode> code =
      RunAgent(kind, *line->options, *context, std::vector<std::string>(argv, argv + argc));
  return code.ok() ? static_cast<int>(*code) : Fail(kind, context->rank, code.status());
}

}  // namespace

int BenchMain(measure::Kind& kind, int argc, char** argv) {
  return worker::WorkerLink::IsWorker() ? RunWorker(kind) : RunAgent(kind, argc, argv);
}

}  // namespace lockstep::bench::harness
