// The same program is an agent where the launcher started it, and a worker where an agent did. All
// agents decide alike what will run; rank 0's leads, and the others follow it.
#include "session/session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/print_stderr.h"
#include "core/base/program.h"
#include "core/base/wrap.h"
#include "core/coordinator/host_clocks.h"
#include "core/verdict/lost_hosts.h"
#include "core/verdict/outcome.h"
#include "results/store/partial_path.h"
#include "results/store/store.h"

namespace lockstep::session {
namespace {

// Of each GPU: half a day.
constexpr std::size_t kMostGpuSamples = 43'200;

// One line on stderr. The coordinator alone tells of a mistake of all ranks, if the launcher then
// ends the others.
int FailOnRank(const Suite& suite, const control::LaunchContext& context, const Status& status) {
  if (context.rank == 0) return lockstep::Fail(suite.name(), status);
  if (coordinator::MistakeIsOwn(context)) {
    PrintStderr("{}: rank {} (host {}): {}\n", suite.name(), context.rank, HostName(),
                OneLine(status.message()));
  }
  return static_cast<int>(ExitCodeOf(status.code()));
}

ExitCode CodeOf(const Result<ExitCode>& code) {
  return code.ok() ? *code : ExitCodeOf(code.status().code());
}

results::store::HostClock RecordOf(const coordinator::HostClocks& clocks, std::size_t host,
                                   Ticks begin) {
  const coordinator::HostClocks::Estimate estimate = clocks.EstimateOf(host, begin);
  results::store::HostClock record;
  record.host = clocks.hosts()[host].name;
  record.ranks = clocks.hosts()[host].ranks;
  record.state = host == 0              ? "reference"
                 : !estimate.known      ? "unknown"
                 : !estimate.consistent ? "inconsistent"
                                        : "estimated";
  record.error_ns = estimate.known ? estimate.error_ns : std::numeric_limits<double>::infinity();
  record.drift_ppm = estimate.drift_ppm;
  record.drift_error_ppm = estimate.drift_error_ppm;
  record.day_offset_ns = estimate.day_offset_ns;
  record.day_offset_error_ns = estimate.day_offset_error_ns;
  record.shortest_round_trip_ns = estimate.shortest_round_trip_ns;
  record.exchanges = static_cast<std::int64_t>(clocks.exchanges(host));
  record.probes = static_cast<std::int64_t>(estimate.probes);
  return record;
}

double SinceBegin(const results::store::Run& run, Ticks ticks) {
  return static_cast<double>(static_cast<std::int64_t>(ticks - run.origin_ticks)) * run.ns_per_tick;
}

// Fills `clocks` and `clock_anchors`; the run has its origin and scale.
void AddClocks(const coordinator::HostClocks& clocks, results::store::Run& run) {
  for (std::size_t host = 0; host < clocks.hosts().size(); ++host) {
    run.clocks.push_back(RecordOf(clocks, host, run.origin_ticks));
    for (const coordinator::HostClocks::Anchor& anchor : clocks.AnchorsOf(host)) {
      run.clock_anchors.push_back({static_cast<std::int32_t>(host), anchor.there,
                                   SinceBegin(run, anchor.low), SinceBegin(run, anchor.high)});
    }
  }
}

Result<ExitCode> OpenAndLead(Suite& suite, const control::LaunchContext& context,
                             const coordinator::CoordinatorOptions& options) {
  results::store::Run run = suite.NewRun();
  Output output(suite.name(), suite.output(), run);
  LOCKSTEP_RETURN_IF_ERROR(output.Check());
  LOCKSTEP_RETURN_IF_ERROR(suite.CheckOutputs());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<coordinator::Coordinator> coordinator,
                            coordinator::Coordinator::Open(context, options));
  Result<ExitCode> code = Lead(suite, *coordinator, run, output);
  coordinator->Dismiss(CodeOf(code));
  return code;
}

Result<ExitCode> RunAgent(Suite& suite, const Launch& launch) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Plan plan, suite.Prepare(launch));
  if (launch.context.rank == 0) {
    LOCKSTEP_RETURN_IF_ERROR(Printed([&plan] {
      fmt::print("{}", plan.text);
      return OkStatus();
    }));
  }
  if (plan.over) return *plan.over;
  coordinator::CoordinatorOptions options = suite.agents();
  options.on_failover = [&suite](const coordinator::FailoverReport& failover) {
    return suite.OnFailover(failover);
  };
  if (launch.context.rank != 0) return coordinator::Follow(launch.context, options);
  return OpenAndLead(suite, launch.context, options);
}

}  // namespace

Output::Output(std::string suite, const std::string& asked, const results::store::Run& run)
    : suite_(std::move(suite)),
      path_(asked.empty() ? results::store::DefaultRunPath(run, "results/runs") : asked),
      file_(path_) {}

void Output::Announce() {
  if (file_.path() == announced_) return;
  PrintStderr("{}: note: results {}go to {}\n", suite_, announced_.empty() ? "" : "now ",
              OneLine(file_.path()));
  announced_ = file_.path();
}

void Output::MoveIfCutOff(const coordinator::Coordinator& coordinator) {
  if (verdict::WeAreCutOff(coordinator.places())) MoveAside(0);
}

void Output::MoveAside(int rank) { file_.MoveTo(results::store::PartialPath(path_, rank)); }

void Output::Save(coordinator::Coordinator& coordinator,
                  const std::function<results::store::Run()>& so_far) {
  MoveIfCutOff(coordinator);
  coordinator.TellBusy();
  Save(so_far());
}

bool Output::Save(results::store::Run so_far) {
  so_far.exit_code = static_cast<int>(verdict::ExitCodeOf(so_far.verdict));
  const bool saved = file_.Save(so_far);
  Announce();
  return saved;
}

Result<ExitCode> Output::Store(results::store::Run& run, const Report& report) {
  run.exit_code = static_cast<int>(verdict::ExitCodeOf(run.verdict));
  const Status stored = file_.Store(run);
  const Status reported = Printed([&] { return report(run, file_); });
  LOCKSTEP_RETURN_IF_ERROR(stored);
  LOCKSTEP_RETURN_IF_ERROR(reported);
  return verdict::ExitCodeOf(run.verdict);
}

Result<ExitCode> Lead(Suite& suite, coordinator::Coordinator& coordinator, results::store::Run& run,
                      Output& output) {
  coordinator.Replicate(results::store::IdentityOf(run));
  LOCKSTEP_RETURN_IF_ERROR(suite.Conduct(coordinator, run, output));
  coordinator.MeasureClocks(/*thoroughly=*/true);
  run.gpu_samples = journal::PlaceSamples(coordinator.ReadGpus(kMostGpuSamples));
  run.logs = coordinator.TakeLogs();
  coordinator.Rest();
  output.MoveIfCutOff(coordinator);
  AddClocks(coordinator.clocks(), run);
  suite.Conclude(coordinator, run);
  return output.Store(run, [&suite](const auto& stored, const results::store::RunFile& file) {
    return suite.Report(stored, file);
  });
}

ExitCode TakeOver(const std::string& suite, const std::string& asked,
                  const coordinator::FailoverReport& failover, results::store::Run run,
                  const Output::Report& report) {
  if (!failover.replicated.empty()) results::store::Identify(failover.replicated.front(), run);
  Output output(suite, asked, run);
  if (!failover.whole) output.MoveAside(failover.successor);
  const Result<ExitCode> code = output.Store(run, report);
  const results::store::RunFile& file = output.file();
  if (!file.older().empty()) {
    PrintStderr("{}: note: what the coordinator had stored is in {}\n", suite,
                OneLine(file.older()));
  }
  PrintStderr("{}: the coordinator (rank 0's agent) is lost; rank {}'s agent took its place: {}\n",
              suite, failover.successor,
              code.ok() ? fmt::format("{}; what is left is in {}", OneLine(run.summary_line),
                                      OneLine(file.path()))
                        : code.status().message());
  return CodeOf(code);
}

int Main(Suite& suite, int argc, const char* const* argv) {
  if (worker::WorkerLink::IsWorker()) {
    Result<std::unique_ptr<worker::WorkerLink>> link = worker::WorkerLink::Open();
    if (link.ok()) return suite.Work(std::move(link).value());
    return lockstep::Fail("lockstep worker", link.status());
  }
  const Result<control::LaunchContext> context = control::DetectLaunch();
  if (!context.ok()) return lockstep::Fail(suite.name(), context.status());
  Launch launch{*context, argc, argv, argv[0]};
  for (int i = 1; i < argc; ++i) launch.command_line += std::string(" ") + argv[i];
  const Result<ExitCode> code = RunAgent(suite, launch);
  return code.ok() ? static_cast<int>(*code) : FailOnRank(suite, *context, code.status());
}

void EndWorker(worker::WorkerLink& link, const Status& error, const control::Message& message) {
  if (!link.Send(message).ok()) PrintStderr("lockstep worker: {}\n", error.message());
  const int code = static_cast<int>(ExitCodeOf(error.code()));
  link.journal().Exit(code);
  std::fflush(stderr);
  // No destructors: finalizing a library that reported an error may hang.
  _exit(code);
}

}  // namespace lockstep::session
