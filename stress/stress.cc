// `stress`: agents select the cases that this launch can run, and rank 0's leads them. Started by
// an agent, the same program is a worker.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "core/comm/backends.h"
#include "core/comm/sim/rules.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "core/coordinator/follower.h"
#include "core/worker/worker_link.h"
#include "stress/cases/catalogue.h"
#include "stress/faults/fault_registry.h"
#include "stress/harness/lead.h"
#include "stress/harness/options.h"
#include "stress/links/link_director.h"
#include "stress/links/link_plugin.h"
#include "stress/run/worker.h"

namespace lockstep::stress {
namespace {

// A proof of a standstill is looked for when a rank was quiet for so long.
constexpr double kQuietSeconds = 0.01;

// Set by scripts/test_hosts on all of its hosts.
constexpr char kTestHostsVariable[] = "LOCKSTEP_TEST_HOSTS";

// One line on stderr, from the coordinator only: every agent finds the same mistake.
int Fail(int rank, const Status& status) {
  if (rank != 0) return 0;
  fmt::print(stderr, "stress: {}\n", status.message());
  return static_cast<int>(ExitCodeOf(status.code()));
}

// Ranks that are to go on without one of theirs need a library that can give a communicator up.
// Where it cannot, such scenarios are left out; an error when nothing else was asked for.
Status LeaveOutRecoveries(std::string_view backend, std::string_view why,
                          cases::Selection& selection) {
  const auto first = std::stable_partition(
      selection.cases.begin(), selection.cases.end(),
      [](const cases::StressCase& stress_case) { return !stress_case.scenario.recovery; });
  if (first == selection.cases.begin() && first != selection.cases.end()) {
    return Unsupported(fmt::format(
        "--backend={} cannot abort and rebuild a communicator, which '{}' is about: {}; use "
        "--backend=gloo, or another scenario",
        backend, first->scenario.name, why));
  }
  for (auto left = first; left != selection.cases.end(); ++left) {
    selection.skipped.push_back(left->scenario.name);
  }
  selection.cases.erase(first, selection.cases.end());
  return OkStatus();
}

Status CheckCases(const comm::Backend& backend, const cases::Selection& selection) {
  if (!backend.uses_launcher_mpi || selection.cases.size() == 1) return OkStatus();
  return Unsupported(fmt::format(
      "--backend={} runs one case a launch, because a launch has one MPI identity, and {} were "
      "asked for; give one scenario and start it once for each",
      backend.name, selection.cases.size()));
}

bool HasLinkFaults(const cases::StressCase& stress_case) {
  return links::LinkDirector::Has(stress_case.faults);
}

// A simulation has no links: what is about them is left out.
Status LeaveOutLinks(cases::Selection& selection) {
  for (const cases::StressCase& stress_case : selection.cases) {
    if (HasLinkFaults(stress_case)) selection.skipped.push_back(stress_case.scenario.name);
  }
  std::erase_if(selection.cases, HasLinkFaults);
  if (!selection.cases.empty()) return OkStatus();
  return Unsupported(fmt::format(
      "--backend=sim has no links, and '{}' is about their faults; choose --backend=gloo",
      selection.skipped.front()));
}

Result<ExitCode> RunAgent(const harness::StressOptions& options,
                          const control::LaunchContext& context, const std::string& command_line) {
  if (options.backend == "sim") {
    if (context.rank != 0) return ExitCode::kPass;
    LOCKSTEP_ASSIGN_OR_RETURN(
        cases::Selection selection,
        cases::SelectCases(options.scenarios, options.ranks, options.seed, options.repeat));
    LOCKSTEP_RETURN_IF_ERROR(cases::LeaveOutUnmet(options.backend, selection));
    if (!comm::sim::SimCapabilities(options.sim_rules).can_abort) {
      LOCKSTEP_RETURN_IF_ERROR(LeaveOutRecoveries(
          fmt::format("sim --sim-rules={}", comm::sim::NameOf(options.sim_rules)),
          "only gloo's rules (--sim-rules=gloo) free the others when a rank aborts", selection));
    }
    LOCKSTEP_RETURN_IF_ERROR(LeaveOutLinks(selection));
    return harness::LeadSimulation(options, std::move(selection), context, command_line);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const comm::Backend* backend,
                            comm::FindBackend("--backend", options.backend));
  LOCKSTEP_ASSIGN_OR_RETURN(
      cases::Selection selection,
      cases::SelectCases(options.scenarios, context.size, options.seed, options.repeat));
  LOCKSTEP_RETURN_IF_ERROR(cases::LeaveOutUnmet(options.backend, selection));
  if (backend->uses_launcher_mpi) {
    LOCKSTEP_RETURN_IF_ERROR(cases::LeaveOutForMpi(context.single_host(), selection));
  } else if (!backend->capabilities().can_abort) {
    LOCKSTEP_RETURN_IF_ERROR(
        LeaveOutRecoveries(options.backend, "its Abort() frees nobody", selection));
  }
  const bool network_faults =
      options.allow_network_faults || std::getenv(kTestHostsVariable) != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(cases::LeaveOutHosts(context.single_host(), network_faults, selection));
  LOCKSTEP_RETURN_IF_ERROR(CheckCases(*backend, selection));
  coordinator::CoordinatorOptions coordinator;
  coordinator.workers_own_mpi = backend->uses_launcher_mpi;
  coordinator.silence_deadline_seconds = options.deadline_seconds;
  coordinator.quiet_seconds = kQuietSeconds;
  if (!options.gpu_samples) coordinator.gpu_sample_seconds = 0;
  if (std::any_of(selection.cases.begin(), selection.cases.end(), HasLinkFaults)) {
    coordinator.plugin = [any = options.allow_network_faults](int rank) {
      return links::MakeLinkPlugin(rank, any);
    };
  }
  if (context.rank != 0) {
    coordinator.on_failover = [&](const coordinator::FailoverReport& failover) {
      return harness::SucceedStress(options, selection, context, command_line, failover);
    };
    return coordinator::Follow(context, coordinator);
  }
  return harness::LeadStress(options, std::move(selection), context, coordinator, command_line);
}

int RunAgent(int argc, char** argv) {
  const Result<control::LaunchContext> context = control::DetectLaunch();
  if (!context.ok()) return Fail(0, context.status());
  const Result<harness::StressCommandLine> line = harness::ParseStressCommandLine(argc, argv);
  if (!line.ok()) return Fail(context->rank, line.status());
  if (line->options && line->options->list_faults) {
    if (context->rank == 0) fmt::print("{}", faults::ListFaults());
    return 0;
  }
  if (!line->options || line->options->list) {
    const Result<std::string> text = line->options ? cases::DescribeCatalogue() : line->text;
    if (!text.ok()) return Fail(context->rank, text.status());
    if (context->rank == 0) fmt::print("{}", *text);
    return 0;
  }
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line += (i > 0 ? " " : "") + std::string(argv[i]);
  const Result<ExitCode> code = RunAgent(*line->options, *context, command_line);
  return code.ok() ? static_cast<int>(*code) : Fail(context->rank, code.status());
}

}  // namespace
}  // namespace lockstep::stress

int main(int argc, char** argv) {
  return lockstep::worker::WorkerLink::IsWorker() ? lockstep::stress::run::RunStressWorker()
                                                  : lockstep::stress::RunAgent(argc, argv);
}
