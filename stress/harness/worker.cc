#include "stress/harness/worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/backends.h"
#include "core/comm/recorded.h"
#include "core/launch/worker_link.h"
#include "core/plan/scenario.h"
#include "stress/faults/fault_gate.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/faulty_communicator.h"
#include "stress/harness/process_body.h"
#include "stress/harness/protocol.h"
#include "stress/workloads/rank_program.h"

namespace lockstep {
namespace {

// The worker dies with its agent, and silence is judged from outside: these are only bounds.
constexpr double kForEverSeconds = 24 * 3600;

// What a rank works with, in the order in which it is made.
struct Rig {
  CaseOrder order;
  Scenario scenario;
  const Backend* backend = nullptr;
  Platform platform;
  std::unique_ptr<ProcessBody> body;
  std::optional<FaultGate> gate;
  std::unique_ptr<RecordedCommunicator> recorded;
  std::optional<FaultyCalls> world;
  // Last: streams end before what they work on.
  std::unique_ptr<Stream> compute;
  std::unique_ptr<Stream> communication;
};

bool Trains(const Scenario& scenario) {
  return std::holds_alternative<TrainingProgram>(scenario.workload);
}

// Whether collectives run on streams beside the program.
bool HasStreams(const Scenario& scenario) {
  const auto* script = std::get_if<ScriptProgram>(&scenario.workload);
  return Trains(scenario) || std::holds_alternative<StreamRaceProgram>(scenario.workload) ||
         (script != nullptr && UsesStreams(*script));
}

Status Prepare(WorkerLink& link, Rig& rig) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Message message,
                            link.Receive(Deadline::AfterSeconds(kForEverSeconds)));
  LOCKSTEP_CHECK(message.type == kCaseMessage, "the case comes first");
  link.journal().EnterPhase(Phase::kStart);
  LOCKSTEP_ASSIGN_OR_RETURN(rig.order, DecodeOrder(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(
      rig.scenario, ParseScenario(rig.order.text, rig.order.origin, {.ranks = rig.order.ranks}));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<PlannedFault> faults,
                            PlanFaults(rig.scenario, rig.order.seed));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.backend, FindBackend("--backend", rig.order.backend));
  rig.body = std::make_unique<ProcessBody>(link);
  rig.gate.emplace(faults, link.rank(), *rig.body);
  return OkStatus();
}

// What the backend runs on; before any fault befalls this rank.
Status OpenPlatform(const WorkerLink& link, Rig& rig) {
  LOCKSTEP_ASSIGN_OR_RETURN(rig.platform, rig.backend->open_platform(
                                              {link.local_rank(), /*host_access=*/true}));
  return OkStatus();
}

Status Connect(WorkerLink& link, Rig& rig) {
  LOCKSTEP_RETURN_IF_ERROR(rig.gate->Reach(FaultMoment::Kind::kInit));
  link.journal().EnterPhase(Phase::kConnect);
  // As PyTorch on CPUs: collectives on a thread beside the one that computes. The launcher's MPI
  // was initialized for one thread.
  const bool threaded = HasStreams(rig.scenario) && !rig.backend->uses_launcher_mpi;
  ConnectRequest request;
  request.rank = link.rank();
  request.size = link.size();
  request.meeting = &link.meeting();
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, WorkerLink::ListenAddress());
  request.threaded_streams = threaded;
  request.timeout_seconds = kForEverSeconds;
  request.device = rig.platform.device.get();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                            rig.backend->connect(request, Deadline::AfterSeconds(kForEverSeconds)));
  rig.recorded = std::make_unique<RecordedCommunicator>(
      std::make_unique<FaultyLibrary>(std::move(communicator), *rig.gate), link.journal(), 0);
  rig.body->set_recorded(rig.recorded.get());
  rig.world.emplace(*rig.recorded, *rig.gate);
  rig.compute = rig.platform.device->NewInlineStream();
  if (threaded) rig.communication = rig.platform.device->NewStream();
  return OkStatus();
}

RankReport RunProgram(Rig& rig) {
  Stream& communication = rig.communication ? *rig.communication : *rig.compute;
  return RunWorkload(rig.scenario, rig.order.seed,
                     {*rig.world, *rig.recorded, *rig.platform.device, *rig.platform.kernels,
                      *rig.compute, communication, *rig.gate, *rig.body,
                      !rig.backend->uses_launcher_mpi});
}

Status Tell(WorkerLink& link, const RankReport& report) {
  return link.Send(
      {kReportMessage, EncodeReport({report.status, report.where, report.iteration, report.checked,
                                     report.wrong_data, report.gradients, report.figures})});
}

// The program is over and was well: what follows in a script that ends.
void Leave(WorkerLink& link, Rig& rig) {
  if (Lingers(rig.scenario)) {
    static_cast<void>(link.Receive(Deadline::AfterSeconds(kForEverSeconds)));
  }
  if (rig.gate->NeverFinalize()) {
    link.journal().Exit(0);
    _exit(0);
  }
  rig.compute.reset();
  rig.communication.reset();
  rig.world.reset();
  rig.body->set_recorded(nullptr);
  rig.recorded.reset();
  link.journal().Exit(0);
}

// Ends like a program that an exception ended: without finalizing, which might hang.
int Raise(WorkerLink& link, const RankReport& report) {
  const Status told = Tell(link, report);
  if (!told.ok()) fmt::print(stderr, "lockstep worker: {}\n", report.status.message());
  const int code = static_cast<int>(ExitCodeOf(report.status.code()));
  link.journal().Exit(code);
  std::fflush(stderr);
  _exit(code);
}

}  // namespace

int RunStressWorker() {
  const Result<std::unique_ptr<WorkerLink>> opened = WorkerLink::Open();
  if (!opened.ok()) {
    fmt::print(stderr, "lockstep worker: {}\n", opened.status().message());
    return static_cast<int>(ExitCodeOf(opened.status().code()));
  }
  WorkerLink& link = **opened;
  auto rig = std::make_unique<Rig>();
  RankReport report;
  report.where = kWherePlatform;
  report.status = Prepare(link, *rig);
  if (report.status.ok()) report.status = OpenPlatform(link, *rig);
  if (report.status.ok()) {
    report.where = "connect";
    report.status = Connect(link, *rig);
  }
  if (report.status.ok()) report = RunProgram(*rig);
  if (!report.status.ok()) return Raise(link, report);
  rig->recorded->EnterPhase(Phase::kFinalize);
  const Status told = Tell(link, report);
  if (!told.ok()) return static_cast<int>(ExitCodeOf(told.code()));
  report.status = rig->gate->Reach(FaultMoment::Kind::kBeforeFinalize);
  if (!report.status.ok()) return Raise(link, report);
  report.kept.reset();
  Leave(link, *rig);
  return 0;
}

}  // namespace lockstep
