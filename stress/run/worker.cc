// The worker of one rank: hears its order, connects, runs the program, and reports. Where ranks
// recover, a thread beside it hears orders while the program is stuck.
#include "stress/run/worker.h"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/print_stderr.h"
#include "core/comm/backends.h"
#include "core/comm/recorded.h"
#include "core/worker/worker_link.h"
#include "session/session.h"
#include "stress/cases/plan_faults.h"
#include "stress/faults/fault_gate.h"
#include "stress/faults/fault_plan.h"
#include "stress/faults/faulty_communicator.h"
#include "stress/run/aborted_generations.h"
#include "stress/run/protocol.h"
#include "stress/scenario/scenario.h"
#include "stress/workloads/program_report.h"
#include "stress/workloads/rank_program.h"

namespace lockstep::stress::run {
namespace {

// What faults do to a rank that is a process, and what they need of it: its journal, its agent, its
// end.
class ProcessBody final : public faults::RankBody {
 public:
  explicit ProcessBody(worker::WorkerLink& link) : link_(link), began_ns_(MonotonicNs()) {}

  // Whose memory faults may take; outlives this.
  void set_device(device::Device* device) { device_ = device; }

  void Journal(std::size_t fault_index) override {
    link_.journal().Fault(fault_index);
    std::lock_guard lock(mutex_);
    const Status told = link_.Send({kFiredMessage, fmt::format("{}", fault_index)});
    if (!told.ok()) PrintStderr("lockstep worker: {}\n", told.message());
  }
  Status ApplyOutside(std::size_t) override {
    std::lock_guard lock(mutex_);
    // Whoever applies it may wait for a processor; when the agent is lost, the link says so.
    return link_.Await(kAppliedMessage, Deadline::AfterSeconds(kForEverSeconds)).status();
  }
  void Exit(int code) override {
    std::fflush(stderr);
    _exit(code);
  }
  double SecondsSinceStart() override { return SecondsSince(began_ns_); }
  Status Sleep(std::int64_t ns) override {
    const std::int64_t until = MonotonicNs() + ns;
    const timespec at{until / 1'000'000'000, until % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
    return OkStatus();
  }
  device::Device* device() override { return device_; }
  faults::RankMarks& marks() override { return marks_; }

 private:
  worker::WorkerLink& link_;
  device::Device* device_ = nullptr;
  std::mutex mutex_;  // of the link: faults of the library fire on the streams' threads
  std::int64_t began_ns_;
  faults::RankMarks marks_;
};

// What a rank works with, in the order in which it is made.
struct WorkerContext : std::enable_shared_from_this<WorkerContext> {
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

Status Prepare(worker::WorkerLink& link, WorkerContext& self) {
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(kCaseMessage, Deadline::AfterSeconds(kForEverSeconds)));
  link.journal().EnterPhase(journal::Phase::kStart);
  LOCKSTEP_ASSIGN_OR_RETURN(self.order, Understand<CaseOrder>(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(
      self.scenario,
      scenario::ParseScenario(self.order.text, self.order.origin, {.ranks = self.order.ranks}));
  std::vector<faults::PlannedFault> faults = cases::PlanFaults(self.scenario, self.order.seed);
  self.membership = self.order.membership;
  self.restarted = self.membership.generation > 0;
  for (const std::int64_t fired : self.membership.fired) {
    faults[static_cast<std::size_t>(fired)].rank = -1;  // nobody's any more
  }
  LOCKSTEP_ASSIGN_OR_RETURN(self.backend, comm::FindBackend("--backend", self.order.backend));
  self.breaks_links = std::ranges::any_of(
      faults, [](const faults::PlannedFault& fault) { return faults::IsOfLink(fault.kind); });
  self.body = std::make_unique<ProcessBody>(link);
  self.gate.emplace(faults, link.rank(), *self.body);
  return OkStatus();
}

// What the backend runs on; before any fault befalls this rank.
Status OpenPlatform(worker::WorkerLink& link, WorkerContext& self) {
  LOCKSTEP_ASSIGN_OR_RETURN(self.platform,
                            self.backend->open_platform({link.local_rank(), /*host_access=*/true}));
  link.Introduce({self.platform.gpu_bus, self.platform.log_file});
  self.body->set_device(self.platform.device.get());
  const std::string_view device = self.platform.device->name();
  if (self.breaks_links && self.order.backend == "nccl" && device == "host") {
    return Unsupported("needs connections of NCCL's, and a stand-in of tests has none");
  }
  if (self.scenario.requirement == "cuda" && device != "cuda") {
    return Unsupported("needs a GPU, and the device is '{}'", device);
  }
  return link.Send(
      {kMachineMessage, worker::WorkerFacts(self.backend->name, self.backend->version(), device,
                                            self.platform.remark)});
}

// Gives the communicator up although the program is stuck in it. The library may not come back: so
// on a thread of its own, which nobody waits for: all that it uses lives as long as it does.
void AbortAside(std::shared_ptr<WorkerContext> shared, const std::string& generation) {
  std::shared_ptr<comm::Communicator> abortable =
      shared->aborted.GiveUp(std::atoi(generation.c_str()));
  shared->link->CloseMeeting(true);
  std::thread([self = std::move(shared), generation, communicator = std::move(abortable)] {
    if (self->body->marks().abort_hangs) {
      static_cast<void>(self->body->Sleep(static_cast<std::int64_t>(kForEverSeconds * 1e9)));
    }
    static_cast<void>(self->gate->Reach(faults::FaultMoment::Kind::kAbort));
    const Status aborted = communicator == nullptr ? OkStatus() : communicator->Abort();
    // The coordinator takes an abort that it hears nothing of for hung.
    if (!aborted.ok()) return PrintStderr("{}\n", aborted.message());
    static_cast<void>(self->link->Send({kAbortedMessage, generation}));
  }).detach();
}

void ListenForAborts(worker::WorkerLink& link, WorkerContext& self) {
  link.journal().Share();  // faults fire where an abort runs, too
  link.Listen([&self](const control::Message& message) {
    if (message.type != kAbortMessage) return false;
    // Null: the process leaves.
    if (std::shared_ptr<WorkerContext> shared = self.weak_from_this().lock()) {
      AbortAside(std::move(shared), message.payload);
    }
    return true;
  });
}

// A program that rebuilds wrongly takes the ranks of the beginning.
void TakePlace(const worker::WorkerLink& link, const WorkerContext& self, Membership& place) {
  if (!self.body->marks().wrong_membership) return;
  place.rank = link.rank();
  place.size = link.size();
}

Status Connect(worker::WorkerLink& link, WorkerContext& self) {
  const bool again = self.membership.generation > 0;
  LOCKSTEP_RETURN_IF_ERROR(self.gate->Reach(again ? faults::FaultMoment::Kind::kRebuild
                                                  : faults::FaultMoment::Kind::kInit));
  Membership place = self.membership;
  TakePlace(link, self, place);
  if (again) LOCKSTEP_RETURN_IF_ERROR(link.Send({kConnectingMessage, control::Encode(place)}));
  link.BeginConnecting();
  // As PyTorch on CPUs: collectives on a thread beside the one that computes. The launcher's MPI
  // was initialized for one thread.
  const bool threaded = HasStreams(self.scenario) && !self.backend->uses_launcher_mpi;
  comm::ConnectRequest request{.rank = place.rank, .size = place.size, .meeting = &link.meeting()};
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, worker::WorkerLink::ListenAddress());
  if (again) request.prefix = fmt::format("world {}", place.generation);
  request.threaded_streams = threaded;
  request.timeout_seconds = kForEverSeconds;
  request.device = self.platform.device.get();
  // Asked while the library connects: nobody else can tell that it has begun to.
  const auto connecting = std::make_shared<std::atomic<bool>>(true);
  request.given_up = [&self, connecting, generation = place.generation] {
    const bool raised =
        connecting->load() && !self.gate->Reach(faults::FaultMoment::Kind::kConnect).ok();
    return raised || self.aborted.Contains(generation);
  };
  const auto& recovery = self.scenario.recovery;
  const Deadline deadline =
      Deadline::AfterSeconds(recovery ? recovery->connect_deadline_seconds : kForEverSeconds);
  Result<std::unique_ptr<comm::Communicator>> connected = self.backend->connect(request, deadline);
  link.EndConnecting();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> communicator, std::move(connected));
  connecting->store(false);
  self.recorded = std::make_shared<comm::RecordedCommunicator>(
      std::make_unique<faults::FaultyLibrary>(std::move(communicator), *self.gate), link.journal(),
      static_cast<std::uint16_t>(place.generation));
  // Evidence only: a program runs as well on a device that does not mark.
  static_cast<void>(self.recorded->MarkOn(link.device_marks(), *self.platform.device));
  if (!self.aborted.Begin(place.generation, self.recorded)) {
    return SystemFailed("the communicator was aborted while it was made");
  }
  self.world.emplace(*self.recorded, *self.gate, *self.platform.device);
  self.compute = self.platform.device->NewInlineStream();
  if (threaded) self.communication = self.platform.device->NewStream();
  if (!again) return OkStatus();
  return link.Send({kConnectedMessage, fmt::format("{} {}", place.generation, NowTicks())});
}

workloads::RankReport RunProgram(WorkerContext& self) {
  device::Stream& communication = self.communication ? *self.communication : *self.compute;
  workloads::RankPorts ports = {*self.world,
                                *self.recorded,
                                *self.platform.device,
                                *self.platform.kernels,
                                *self.compute,
                                communication,
                                *self.gate,
                                *self.body,
                                !self.backend->uses_launcher_mpi};
  if (self.membership.generation > 0) {
    ports.first_iteration = self.membership.first_iteration;
    ports.members = self.membership.members;
    ports.restarted = self.restarted;
  }
  return workloads::RunWorkload(self.scenario, self.order.seed, ports);
}

control::Message MessageOf(const workloads::RankReport& report) {
  return {kReportMessage, control::Encode<workloads::ProgramReport>(report)};
}

void GiveUp(WorkerContext& self) {
  self.compute.reset();
  self.communication.reset();
  self.world.reset();
  self.aborted.End();
  self.recorded.reset();
}

// The program is over and was well: what follows in a script that ends.
void Leave(worker::WorkerLink& link, WorkerContext& self) {
  if (scenario::Lingers(self.scenario)) {
    static_cast<void>(link.Receive(kRebuildMessage, Deadline::AfterSeconds(kForEverSeconds)));
  }
  if (self.gate->NeverFinalize()) {
    link.journal().Exit(0);
    _exit(0);
  }
  GiveUp(self);
  link.journal().Exit(0);
}

// Waits for its place in the next communicator, if there will be one.
Status AwaitRebuild(worker::WorkerLink& link, WorkerContext& self, workloads::RankReport& report) {
  LOCKSTEP_RETURN_IF_ERROR(link.Send(MessageOf(report)));
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(kRebuildMessage, Deadline::AfterSeconds(kForEverSeconds)));
  // Not before all have aborted: a stream that is stuck comes back then, and until then the library
  // may write where it was told to.
  self.compute.reset();
  self.communication.reset();
  report.kept.reset();
  GiveUp(self);
  LOCKSTEP_ASSIGN_OR_RETURN(self.membership, Understand<Membership>(message.payload));
  self.restarted = false;
  link.CloseMeeting(false);
  // The order to abort goes past this message, and may have come first.
  if (self.aborted.Contains(self.membership.generation)) link.CloseMeeting(true);
  return OkStatus();
}

// Ends like a program that an exception ended.
int Raise(worker::WorkerLink& link, const workloads::RankReport& report) {
  session::EndWorker(link, report.status, MessageOf(report));
}

workloads::RankReport ConnectAndRun(worker::WorkerLink& link, WorkerContext& self) {
  workloads::RankReport report;
  report.where = "connect";
  report.completed = self.membership.first_iteration;
  report.status = Connect(link, self);
  return report.status.ok() ? RunProgram(self) : report;
}

// Errors that ranks recover from.
bool OfTheLibrary(const Status& status) {
  return status.code() == StatusCode::kSystemFailed ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// Through as many communicators as it takes.
workloads::RankReport RunGenerations(worker::WorkerLink& link, WorkerContext& self) {
  if (self.scenario.recovery) ListenForAborts(link, self);
  workloads::RankReport report = ConnectAndRun(link, self);
  while (self.scenario.recovery && OfTheLibrary(report.status) && !self.body->marks().raised) {
    const Status status = AwaitRebuild(link, self, report);
    if (!status.ok()) {
      report.status = status;
      break;
    }
    report = ConnectAndRun(link, self);
  }
  return report;
}

}  // namespace

int RunStressWorker(std::unique_ptr<worker::WorkerLink> own_link) {
  const auto self = std::make_shared<WorkerContext>();
  self->link = std::move(own_link);
  worker::WorkerLink& link = *self->link;
  workloads::RankReport report;
  report.where = workloads::kWherePlatform;
  report.status = Prepare(link, *self);
  if (report.status.ok()) report.status = OpenPlatform(link, *self);
  if (report.status.ok()) report = RunGenerations(link, *self);
  if (!report.status.ok()) return Raise(link, report);
  self->recorded->EnterPhase(journal::Phase::kFinalize);
  const Status told = link.Send(MessageOf(report));
  if (!told.ok()) return static_cast<int>(ExitCodeOf(told.code()));
  report.status = self->gate->Reach(faults::FaultMoment::Kind::kBeforeFinalize);
  if (!report.status.ok()) return Raise(link, report);
  report.kept.reset();
  Leave(link, *self);
  return 0;
}

}  // namespace lockstep::stress::run
