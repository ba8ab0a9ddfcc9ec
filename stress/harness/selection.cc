// Leaves out the cases that a launch cannot show: by its backend, by its hosts, and in a simulation
// by what there is no process, machine or link for.
#include "stress/harness/selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/comm/backends.h"
#include "stress/links/link_director.h"

namespace lockstep::stress::harness {
namespace {

// Set by scripts/test_hosts on all of its hosts.
constexpr char kTestHostsVariable[] = "LOCKSTEP_TEST_HOSTS";

// Ranks that are to go on without one of theirs need a library that can give a communicator up.
Status LeaveOutRecoveries(std::string_view backend, std::string_view why,
                          cases::Selection& selection) {
  return cases::LeaveOut(
      selection, [](const cases::StressCase& one) { return one.scenario.recovery.has_value(); },
      [&](const cases::StressCase& first) {
        return fmt::format(
            "--backend={} cannot abort and rebuild a communicator, which '{}' is about: {}; use "
            "--backend=gloo, or another scenario",
            backend, first.scenario.name, why);
      });
}

Status CheckCases(const comm::Backend& backend, const cases::Selection& selection) {
  if (!backend.uses_launcher_mpi || selection.cases.size() == 1) return OkStatus();
  return Unsupported(
      "--backend={} runs one case per launch, because a launch has one MPI identity, and {} were "
      "asked for; give one scenario and start it once for each",
      backend.name, selection.cases.size());
}

bool NeedsProcesses(const faults::PlannedFault& fault) {
  using Kind = faults::FaultMoment::Kind;
  // A library that connects, and one that is told to abort.
  return faults::IsByAgent(fault.kind) || fault.moment.kind == Kind::kConnect ||
         fault.moment.kind == Kind::kAbort;
}

// Faults of processes, machines and links are nothing that a simulation could show.
Status LeaveOutWhatIsReal(cases::Selection& selection) {
  LOCKSTEP_RETURN_IF_ERROR(
      cases::LeaveOut(selection, HasLinkFaults, [](const cases::StressCase& first) {
        return fmt::format(
            "--backend=sim has no links, and '{}' is about their faults; choose --backend=gloo",
            first.scenario.name);
      }));
  return cases::LeaveOut(
      selection,
      [](const cases::StressCase& one) { return std::ranges::any_of(one.faults, NeedsProcesses); },
      [](const cases::StressCase& first) {
        return fmt::format(
            "--backend=sim: the fault '{}' needs real processes; run it with mpirun and another "
            "backend",
            faults::NameOf(std::ranges::find_if(first.faults, NeedsProcesses)->kind));
      });
}

}  // namespace

bool HasLinkFaults(const cases::StressCase& stress_case) {
  return links::LinkDirector::Has(stress_case.faults);
}

Result<cases::Selection> SelectForSimulation(const StressOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      cases::Selection selection,
      cases::SelectCases(options.scenarios, options.ranks, options.seed, options.repeat));
  LOCKSTEP_RETURN_IF_ERROR(cases::LeaveOutUnmet(options.backend, selection));
  if (!comm::sim::SimCapabilities(options.sim_rules).can_abort) {
    LOCKSTEP_RETURN_IF_ERROR(LeaveOutRecoveries(
        fmt::format("sim --sim-rules={}", comm::sim::NameOf(options.sim_rules)),
        "only gloo's rules (--sim-rules=gloo) free the others when a rank aborts", selection));
  }
  LOCKSTEP_RETURN_IF_ERROR(LeaveOutWhatIsReal(selection));
  return selection;
}

Result<cases::Selection> SelectForLaunch(const StressOptions& options,
                                         const control::LaunchContext& context) {
  const Result<const comm::Backend*> found = comm::FindBackend("--backend", options.backend);
  if (!found.ok()) {
    return Status(found.status().code(), found.status().message() + "; or sim, without a launcher");
  }
  const comm::Backend* const backend = *found;
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
  return selection;
}

}  // namespace lockstep::stress::harness
