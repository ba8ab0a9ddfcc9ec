#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "core/comm/backends.h"
#include "core/comm/sim/rules.h"
#include "core/launch/context.h"
#include "core/launch/fleet.h"
#include "core/launch/worker_link.h"
#include "stress/harness/catalogue.h"
#include "stress/harness/lead.h"
#include "stress/harness/options.h"
#include "stress/harness/worker.h"
#include "stress/links/link_companion.h"
#include "stress/links/link_director.h"

namespace lockstep {
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
Status LeaveOutRecoveries(std::string_view backend, std::string_view why, Selection& selection) {
  const auto first = std::stable_partition(
      selection.cases.begin(), selection.cases.end(),
      [](const StressCase& stress_case) { return !stress_case.scenario.recovery; });
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

Status CheckCases(const Backend& backend, const Selection& selection) {
  if (!backend.uses_launcher_mpi || selection.cases.size() == 1) return OkStatus();
  return Unsupported(fmt::format(
      "--backend={} runs one case a launch, because a launch has one MPI identity, and {} were "
      "asked for; give one scenario and start it once for each",
      backend.name, selection.cases.size()));
}

bool HasLinkFaults(const StressCase& stress_case) { return LinkDirector::Has(stress_case.faults); }

// A simulation has no links: what is about them is left out.
Status LeaveOutLinks(Selection& selection) {
  for (const StressCase& stress_case : selection.cases) {
    if (HasLinkFaults(stress_case)) selection.skipped.push_back(stress_case.scenario.name);
  }
  std::erase_if(selection.cases, HasLinkFaults);
  if (!selection.cases.empty()) return OkStatus();
  return Unsupported(fmt::format(
      "--backend=sim has no links, and '{}' is about their faults; choose --backend=gloo",
      selection.skipped.front()));
}

Result<ExitCode> RunAgent(const StressOptions& options, const LaunchContext& context,
                          const std::string& command_line) {
  if (options.backend == "sim") {
    if (context.rank != 0) return ExitCode::kPass;
    LOCKSTEP_ASSIGN_OR_RETURN(Selection selection, SelectCases(options.scenarios, options.ranks,
                                                               options.seed, options.repeat));
    LOCKSTEP_RETURN_IF_ERROR(LeaveOutUnmet(options.backend, selection));
    if (!SimCapabilities(options.sim_rules).can_abort) {
      LOCKSTEP_RETURN_IF_ERROR(LeaveOutRecoveries(
          fmt::format("sim --sim-rules={}", NameOf(options.sim_rules)),
          "only gloo's rules (--sim-rules=gloo) free the others when a rank aborts", selection));
    }
    LOCKSTEP_RETURN_IF_ERROR(LeaveOutLinks(selection));
    return LeadSimulation(options, std::move(selection), context, command_line);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Backend* backend, FindBackend("--backend", options.backend));
  LOCKSTEP_ASSIGN_OR_RETURN(Selection selection, SelectCases(options.scenarios, context.size,
                                                             options.seed, options.repeat));
  LOCKSTEP_RETURN_IF_ERROR(LeaveOutUnmet(options.backend, selection));
  if (backend->uses_launcher_mpi) {
    LOCKSTEP_RETURN_IF_ERROR(LeaveOutForMpi(context.single_host(), selection));
  } else if (!backend->capabilities().can_abort) {
    LOCKSTEP_RETURN_IF_ERROR(
        LeaveOutRecoveries(options.backend, "its Abort() frees nobody", selection));
  }
  const bool network_faults =
      options.allow_network_faults || std::getenv(kTestHostsVariable) != nullptr;
  LOCKSTEP_RETURN_IF_ERROR(LeaveOutHosts(context.single_host(), network_faults, selection));
  LOCKSTEP_RETURN_IF_ERROR(CheckCases(*backend, selection));
  FleetOptions fleet;
  fleet.workers_own_mpi = backend->uses_launcher_mpi;
  fleet.silence_deadline_seconds = options.deadline_seconds;
  fleet.quiet_seconds = kQuietSeconds;
  if (!options.gpu_samples) fleet.gpu_sample_seconds = 0;
  if (std::any_of(selection.cases.begin(), selection.cases.end(), HasLinkFaults)) {
    fleet.companion = [any = options.allow_network_faults](int rank) {
      return MakeLinkCompanion(rank, any);
    };
  }
  if (context.rank != 0) {
    fleet.succeed = [&](const Legacy& legacy) {
      return SucceedStress(options, selection, context, command_line, legacy);
    };
    return Follow(context, fleet);
  }
  return LeadStress(options, std::move(selection), context, fleet, command_line);
}

int RunAgent(int argc, char** argv) {
  const Result<LaunchContext> context = DetectLaunch();
  if (!context.ok()) return Fail(0, context.status());
  const Result<StressCommandLine> line = ParseStressCommandLine(argc, argv);
  if (!line.ok()) return Fail(context->rank, line.status());
  if (!line->options || line->options->list) {
    const Result<std::string> text = line->options ? DescribeCatalogue() : line->text;
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
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::WorkerLink::IsWorker() ? lockstep::RunStressWorker()
                                          : lockstep::RunAgent(argc, argv);
}
