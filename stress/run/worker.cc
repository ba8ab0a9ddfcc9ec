// The worker of one rank: hears its order, connects, runs the program, and reports. Where ranks
// recover, a thread beside it hears orders while the program is stuck.
#include "stress/run/worker.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/comm/backends.h"
#include "core/comm/recorded.h"
#include "core/worker/worker_facts.h"
#include "core/worker/worker_link.h"
#include "stress/cases/plan_faults.h"
#include "stress/cases/program_report.h"
#include "stress/faults/fault_gate.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/faulty_communicator.h"
#include "stress/run/aborted_generations.h"
#include "stress/run/process_body.h"
#include "stress/run/protocol.h"
#include "stress/scenario/scenario.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::run {
namespace {

// The worker dies with its agent, and silence is judged from outside: these are only bounds.
constexpr double kForEverSeconds = 24 * 3600;

// What a rank works with, in the order in which it is made.
struct Rig : std::enable_shared_from_this<Rig> {
  CaseOrder order;
  scenario::Scenario scenario;
  const comm::Backend* backend = nullptr;
  comm::Platform platform;
  std::unique_ptr<ProcessBody> body;
  std::optional<faults::FaultGate> gate;
  bool breaks_links = false;
  Membership membership;
  bool restarted = false;
  std::shared_ptr<comm::RecordedCommunicator> recorded;
  AbortedGenerations aborted;
  std::optional<faults::FaultyCalls> world;
  // Streams end before what they work on.
  std::unique_ptr<device::Stream> compute;
  std::unique_ptr<device::Stream> communication;
  // Last: its listener uses the rest.
  std::unique_ptr<worker::WorkerLink> link;
};

bool Trains(const scenario::Scenario& scenario) {
  return std::holds_alternative<ddp::TrainingProgram>(scenario.workload);
}

// Whether collectives run on streams beside the program.
bool HasStreams(const scenario::Scenario& scenario) {
  const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload);
  return Trains(scenario) ||
         std::holds_alternative<scenario::StreamRaceProgram>(scenario.workload) ||
         std::holds_alternative<scenario::GraphReplayProgram>(scenario.workload) ||
         (script != nullptr && scenario::UsesStreams(*script));
}

Status Prepare(worker::WorkerLink& link, Rig& rig) {
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(kCaseMessage, Deadline::AfterSeconds(kForEverSeconds)));
  link.journal().EnterPhase(journal::Phase::kStart);
  LOCKSTEP_ASSIGN_OR_RETURN(rig.order, DecodeOrder(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.scenario, scenario::ParseScenario(rig.order.text, rig.order.origin,
                                                                  {.ranks = rig.order.ranks}));
  std::vector<faults::PlannedFault> faults = cases::PlanFaults(rig.scenario, rig.order.seed);
  rig.membership = rig.order.membership;
  rig.restarted = rig.membership.generation > 0;
  for (const std::int64_t fired : rig.membership.fired) {
    faults[static_cast<std::size_t>(fired)].rank = -1;  // nobody's any more
  }
  LOCKSTEP_ASSIGN_OR_RETURN(rig.backend, comm::FindBackend("--backend", rig.order.backend));
  rig.breaks_links = std::ranges::any_of(
      faults, [](const faults::PlannedFault& fault) { return faults::IsOfLink(fault.kind); });
  rig.body = std::make_unique<ProcessBody>(link);
  rig.gate.emplace(faults, link.rank(), *rig.body);
  return OkStatus();
}

// What the backend runs on; before any fault befalls this rank.
Status OpenPlatform(worker::WorkerLink& link, Rig& rig) {
  LOCKSTEP_ASSIGN_OR_RETURN(rig.platform,
                            rig.backend->open_platform({link.local_rank(), /*host_access=*/true}));
  link.Introduce({rig.platform.gpu_bus, rig.platform.log_file});
  rig.body->set_device(rig.platform.device.get());
  const std::string_view device = rig.platform.device->name();
  if (rig.breaks_links && rig.order.backend == "nccl" && device == "host") {
    return Unsupported("needs connections of NCCL's, and a stand-in of tests has none");
  }
  if (rig.scenario.requirement == "cuda" && device != "cuda") {
    return Unsupported(fmt::format("needs a GPU, and the device is '{}'", device));
  }
  return link.Send({kMachineMessage, worker::WorkerFacts(rig.backend->name, rig.backend->version(),
                                                         device, rig.platform.remark)});
}

// Gives the communicator up although the program is stuck in it. The library may not come back: so
// on a thread of its own, which nobody waits for: all that it uses lives as long as it does.
void AbortAside(std::shared_ptr<Rig> shared, const std::string& generation) {
  std::shared_ptr<comm::Communicator> abortable =
      shared->aborted.GiveUp(std::atoi(generation.c_str()));
  shared->link->CloseMeeting(true);
  std::thread([rig = std::move(shared), generation, communicator = std::move(abortable)] {
    if (rig->body->abort_hangs()) {
      static_cast<void>(rig->body->Sleep(static_cast<std::int64_t>(kForEverSeconds * 1e9)));
    }
    static_cast<void>(rig->gate->Reach(faults::FaultMoment::Kind::kAbort));
    if (communicator != nullptr) communicator->Abort();
    static_cast<void>(rig->link->Send({kAbortedMessage, generation}));
  }).detach();
}

void ListenForAborts(worker::WorkerLink& link, Rig& rig) {
  link.Listen([&rig](const control::Message& message) {
    if (message.type != kAbortMessage) return false;
    // Null: the process leaves.
    if (std::shared_ptr<Rig> shared = rig.weak_from_this().lock()) {
      AbortAside(std::move(shared), message.payload);
    }
    return true;
  });
}

// A program that rebuilds wrongly takes the ranks of the beginning.
void TakePlace(const worker::WorkerLink& link, const Rig& rig, Membership& place) {
  if (!rig.body->wrong_membership()) return;
  place.rank = link.rank();
  place.size = link.size();
}

Status Connect(worker::WorkerLink& link, Rig& rig) {
  const bool again = rig.membership.generation > 0;
  LOCKSTEP_RETURN_IF_ERROR(rig.gate->Reach(again ? faults::FaultMoment::Kind::kRebuild
                                                 : faults::FaultMoment::Kind::kInit));
  Membership place = rig.membership;
  TakePlace(link, rig, place);
  if (again) LOCKSTEP_RETURN_IF_ERROR(link.Send({kConnectingMessage, EncodeMembership(place)}));
  link.journal().EnterPhase(journal::Phase::kConnect);
  // As PyTorch on CPUs: collectives on a thread beside the one that computes. The launcher's MPI
  // was initialized for one thread.
  const bool threaded = HasStreams(rig.scenario) && !rig.backend->uses_launcher_mpi;
  comm::ConnectRequest request;
  request.rank = place.rank;
  request.size = place.size;
  request.meeting = &link.meeting();
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, worker::WorkerLink::ListenAddress());
  if (again) request.prefix = fmt::format("world {}", place.generation);
  request.threaded_streams = threaded;
  request.timeout_seconds = kForEverSeconds;
  request.device = rig.platform.device.get();
  // Asked while the library connects: nobody else can tell that it has begun to.
  const auto connecting = std::make_shared<std::atomic<bool>>(true);
  request.given_up = [&rig, connecting, generation = place.generation] {
    const bool raised =
        connecting->load() && !rig.gate->Reach(faults::FaultMoment::Kind::kConnect).ok();
    return raised || rig.aborted.Contains(generation);
  };
  const auto& recovery = rig.scenario.recovery;
  const Deadline deadline =
      Deadline::AfterSeconds(recovery ? recovery->connect_deadline_seconds : kForEverSeconds);
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> communicator,
                            rig.backend->connect(request, deadline));
  connecting->store(false);
  rig.recorded = std::make_shared<comm::RecordedCommunicator>(
      std::make_unique<faults::FaultyLibrary>(std::move(communicator), *rig.gate), link.journal(),
      static_cast<std::uint16_t>(place.generation));
  // Evidence only: a program runs as well on a device that does not mark.
  static_cast<void>(rig.recorded->MarkOn(link.device_marks(), *rig.platform.device));
  if (!rig.aborted.Begin(place.generation, rig.recorded)) {
    return SystemFailed("the communicator was aborted while it was made");
  }
  rig.body->set_recorded(rig.recorded.get());
  rig.world.emplace(*rig.recorded, *rig.gate, *rig.platform.device);
  rig.compute = rig.platform.device->NewInlineStream();
  if (threaded) rig.communication = rig.platform.device->NewStream();
  if (!again) return OkStatus();
  return link.Send({kConnectedMessage, fmt::format("{} {}", place.generation, NowTicks())});
}

workloads::RankReport RunProgram(Rig& rig) {
  device::Stream& communication = rig.communication ? *rig.communication : *rig.compute;
  workloads::RankPorts ports = {*rig.world,
                                *rig.recorded,
                                *rig.platform.device,
                                *rig.platform.kernels,
                                *rig.compute,
                                communication,
                                *rig.gate,
                                *rig.body,
                                !rig.backend->uses_launcher_mpi};
  if (rig.membership.generation > 0) {
    ports.first_iteration = rig.membership.first_iteration;
    ports.members = rig.membership.members;
    ports.restarted = rig.restarted;
  }
  return workloads::RunWorkload(rig.scenario, rig.order.seed, ports);
}

Status Tell(worker::WorkerLink& link, const workloads::RankReport& report) {
  return link.Send(
      {kReportMessage, cases::EncodeReport({report.status, report.where, report.iteration,
                                            report.checked, report.wrong_data, report.gradients,
                                            report.figures, report.completed})});
}

void GiveUp(Rig& rig) {
  rig.compute.reset();
  rig.communication.reset();
  rig.world.reset();
  if (rig.body != nullptr) rig.body->set_recorded(nullptr);
  rig.aborted.End();
  rig.recorded.reset();
}

// The program is over and was well: what follows in a script that ends.
void Leave(worker::WorkerLink& link, Rig& rig) {
  if (scenario::Lingers(rig.scenario)) {
    static_cast<void>(link.Receive(kRebuildMessage, Deadline::AfterSeconds(kForEverSeconds)));
  }
  if (rig.gate->NeverFinalize()) {
    link.journal().Exit(0);
    _exit(0);
  }
  GiveUp(rig);
  link.journal().Exit(0);
}

// Waits for its place in the next communicator, if there will be one.
Status AwaitRebuild(worker::WorkerLink& link, Rig& rig, workloads::RankReport& report) {
  LOCKSTEP_RETURN_IF_ERROR(Tell(link, report));
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(kRebuildMessage, Deadline::AfterSeconds(kForEverSeconds)));
  // Not before all have aborted: a stream that is stuck comes back then, and until then the library
  // may write where it was told to.
  rig.compute.reset();
  rig.communication.reset();
  report.kept.reset();
  GiveUp(rig);
  LOCKSTEP_ASSIGN_OR_RETURN(rig.membership, DecodeMembership(message.payload));
  rig.restarted = false;
  link.CloseMeeting(false);
  // The order to abort goes past this message, and may have come first.
  if (rig.aborted.Contains(rig.membership.generation)) link.CloseMeeting(true);
  return OkStatus();
}

// Ends like a program that an exception ended: without finalizing, which might hang.
int Raise(worker::WorkerLink& link, const workloads::RankReport& report) {
  const Status told = Tell(link, report);
  if (!told.ok()) fmt::print(stderr, "lockstep worker: {}\n", report.status.message());
  const int code = static_cast<int>(ExitCodeOf(report.status.code()));
  link.journal().Exit(code);
  std::fflush(stderr);
  _exit(code);
}

workloads::RankReport ConnectAndRun(worker::WorkerLink& link, Rig& rig) {
  workloads::RankReport report;
  report.where = "connect";
  report.completed = rig.membership.first_iteration;
  report.status = Connect(link, rig);
  return report.status.ok() ? RunProgram(rig) : report;
}

// Errors that ranks recover from.
bool OfTheLibrary(const Status& status) {
  return status.code() == StatusCode::kSystemFailed ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// Through as many communicators as it takes.
workloads::RankReport RunGenerations(worker::WorkerLink& link, Rig& rig) {
  if (rig.scenario.recovery) ListenForAborts(link, rig);
  workloads::RankReport report = ConnectAndRun(link, rig);
  while (rig.scenario.recovery && OfTheLibrary(report.status) && !rig.body->raised()) {
    const Status status = AwaitRebuild(link, rig, report);
    if (!status.ok()) {
      report.status = status;
      break;
    }
    report = ConnectAndRun(link, rig);
  }
  return report;
}

}  // namespace

int RunStressWorker() {
  const auto rig = std::make_shared<Rig>();
  Result<std::unique_ptr<worker::WorkerLink>> opened = worker::WorkerLink::Open();
  if (!opened.ok()) {
    fmt::print(stderr, "lockstep worker: {}\n", opened.status().message());
    return static_cast<int>(ExitCodeOf(opened.status().code()));
  }
  rig->link = std::move(opened).value();
  worker::WorkerLink& link = *rig->link;
  workloads::RankReport report;
  report.where = cases::kWherePlatform;
  report.status = Prepare(link, *rig);
  if (report.status.ok()) report.status = OpenPlatform(link, *rig);
  if (report.status.ok()) report = RunGenerations(link, *rig);
  if (!report.status.ok()) return Raise(link, report);
  rig->recorded->EnterPhase(journal::Phase::kFinalize);
  const Status told = Tell(link, report);
  if (!told.ok()) return static_cast<int>(ExitCodeOf(told.code()));
  report.status = rig->gate->Reach(faults::FaultMoment::Kind::kBeforeFinalize);
  if (!report.status.ok()) return Raise(link, report);
  report.kept.reset();
  Leave(link, *rig);
  return 0;
}

}  // namespace lockstep::stress::run
