#include "bench/harness/worker.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "bench/harness/case_runner.h"
#include "bench/harness/collective_step.h"
#include "bench/harness/ddp_step.h"
#include "bench/harness/link_step.h"
#include "bench/harness/load_step.h"
#include "bench/harness/model_shelf.h"
#include "bench/harness/protocol.h"
#include "bench/harness/state_broadcast_step.h"
#include "core/comm/backends.h"
#include "core/comm/nccl/choices.h"
#include "core/comm/recorded.h"
#include "core/journal/device_marks.h"
#include "core/launch/machine_facts.h"
#include "core/launch/worker_link.h"
#include "core/plan/plan.h"

namespace lockstep {
namespace {

constexpr double kOrderSeconds = 86'400;  // the worker dies with its agent, so this is never hit
constexpr double kConnectSeconds = 60;

// Everything a rank measures with, in the order in which it is made.
struct Rig {
  Plan plan;
  const Backend* backend = nullptr;
  Platform platform;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Stream> beside;  // only where it is needed: a thread makes others slower
  std::unique_ptr<Buffer> send;
  std::unique_ptr<Buffer> recv;
  std::optional<InputArena> inputs;
  std::uint32_t stamp = 0;
  std::unique_ptr<RecordedCommunicator> communicator;
  std::string marks;
  std::optional<Bench> bench;
  std::optional<ModelShelf> shelf;
  std::map<std::uint32_t, CaseRunner> runners;
};

// Only a plan of nothing but collectives, messages and steps leaves all memory to the ports; and
// PowerSGD's factors are the host's work.
bool HostTouches(const Plan& plan) {
  return std::any_of(plan.cases.begin(), plan.cases.end(), [](const PlannedCase& planned) {
    const auto* const step = std::get_if<DdpStep>(&planned.step);
    if (step != nullptr) return step->comm_hook == "powersgd";
    return !std::holds_alternative<CollectiveCalls>(planned.step) &&
           !std::holds_alternative<LinkExchange>(planned.step);
  });
}

// Who notes what the device begins and ends, in words; empty where the host runs everything.
std::string MarkDevice(WorkerLink& link, Rig& rig) {
  if (!NcclChoicesFromEnvironment().marks) return "none: --no-device-marks";
  const Result<bool> marked = rig.communicator->MarkOn(link.device_marks(), *rig.platform.device);
  if (!marked.ok()) return "none: " + marked.status().message();
  return *marked ? std::string(NameOf(ReadDeviceMarks(link.device_marks()).method)) : "";
}

Status Connect(WorkerLink& link, const Backend& backend, Rig& rig) {
  link.journal().EnterPhase(Phase::kConnect);
  ConnectRequest request;
  request.rank = link.rank();
  request.size = link.size();
  request.meeting = &link.meeting();
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, WorkerLink::ListenAddress());
  request.threaded_streams = CommunicatesOnThreads(rig.plan);
  LOCKSTEP_ASSIGN_OR_RETURN(rig.platform,
                            backend.open_platform({link.local_rank(), HostTouches(rig.plan)}));
  link.Introduce({rig.platform.gpu_bus, rig.platform.log_file});
  request.device = rig.platform.device.get();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> communicator,
                            backend.connect(request, Deadline::AfterSeconds(kConnectSeconds)));
  rig.communicator =
      std::make_unique<RecordedCommunicator>(std::move(communicator), link.journal(), 0);
  rig.marks = MarkDevice(link, rig);
  return OkStatus();
}

// What only the library and the device could tell, before anything is measured.
Status CheckOperations(const Rig& rig) {
  for (const PlannedCase& planned : rig.plan.cases) {
    for (const Operation& operation : planned.operations) {
      LOCKSTEP_RETURN_IF_ERROR(rig.communicator->Supports(AsSupported(*rig.backend, operation)));
    }
  }
  return OkStatus();
}

bool NeedsThread(const Rig& rig) {
  if (CommunicatesOnThreads(rig.plan)) return true;
  for (const PlannedCase& planned : rig.plan.cases) {
    for (const Operation& operation : planned.operations) {
      if (AsSupported(*rig.backend, operation).blocking != operation.blocking) return true;
    }
  }
  return false;
}

Status Allocate(WorkerLink& link, Rig& rig) {
  link.journal().EnterPhase(Phase::kAllocate);
  Device& device = *rig.platform.device;
  LOCKSTEP_ASSIGN_OR_RETURN(rig.send, device.Allocate(AlignedBytes(rig.plan.send_buffer_bytes)));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.recv, device.Allocate(rig.plan.recv_buffer_bytes));
  rig.inputs.emplace(rig.send->data(), AlignedBytes(rig.plan.send_buffer_bytes), link.rank());
  rig.stream = device.NewInlineStream();
  if (NeedsThread(rig)) rig.beside = device.NewStream();
  rig.bench.emplace(Bench{link, *rig.communicator, *rig.backend, rig.plan, device,
                          *rig.platform.kernels, *rig.stream, rig.beside.get(), *rig.inputs,
                          rig.recv->data(), rig.platform.pattern_memory.get(), rig.stamp,
                          CalibrateTicks().ns_per_tick});
  rig.shelf.emplace(*rig.bench);
  return OkStatus();
}

std::unique_ptr<Step> MakeStep(Rig& rig, std::uint32_t case_index) {
  const StepPlan& step = rig.plan.cases[case_index].step;
  if (std::holds_alternative<DdpStep>(step)) {
    return std::make_unique<DdpStepRunner>(*rig.bench, case_index, *rig.shelf);
  }
  if (std::holds_alternative<StateBroadcast>(step)) {
    return std::make_unique<StateBroadcastStep>(*rig.bench, case_index, *rig.shelf);
  }
  if (std::holds_alternative<ShardedLoad>(step)) {
    return std::make_unique<LoadStep>(*rig.bench, case_index);
  }
  if (std::holds_alternative<LinkExchange>(step)) {
    return std::make_unique<LinkStep>(*rig.bench, case_index);
  }
  return std::make_unique<CollectiveStep>(*rig.bench, case_index,
                                          NcclChoicesFromEnvironment().graphs);
}

Status RunRound(WorkerLink& link, const Round& round, Rig& rig) {
  for (const Batch& batch : round.batches) {
    auto runner = rig.runners.find(batch.case_index);
    if (runner == rig.runners.end()) {
      CaseRunner made(*rig.bench, batch.case_index, MakeStep(rig, batch.case_index));
      runner = rig.runners.emplace(batch.case_index, std::move(made)).first;
    }
    LOCKSTEP_RETURN_IF_ERROR(runner->second.RunBatch(batch, round.number));
  }
  return link.Send({kRoundDoneMessage, ""});
}

Status Prepare(WorkerLink& link, Rig& rig) {
  link.journal().Idle();
  LOCKSTEP_ASSIGN_OR_RETURN(const Message message,
                            link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
  LOCKSTEP_CHECK(message.type == kPlanMessage, "the plan comes first");
  LOCKSTEP_ASSIGN_OR_RETURN(rig.plan, PlanFromJson(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.backend, FindBackend("--backend", rig.plan.backend));
  LOCKSTEP_RETURN_IF_ERROR(Connect(link, *rig.backend, rig));
  LOCKSTEP_RETURN_IF_ERROR(CheckOperations(rig));
  LOCKSTEP_RETURN_IF_ERROR(Allocate(link, rig));
  return link.Send(
      {kReadyMessage, WorkerFacts(rig.backend->name, rig.backend->version(),
                                  rig.platform.device->name(), rig.platform.remark, rig.marks)});
}

// Obeys until the conductor says that it is over.
Status Serve(WorkerLink& link, Rig& rig) {
  LOCKSTEP_RETURN_IF_ERROR(Prepare(link, rig));
  for (;;) {
    link.journal().Idle();
    LOCKSTEP_ASSIGN_OR_RETURN(const Message message,
                              link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
    if (message.type == kFinishMessage) break;
    LOCKSTEP_CHECK(message.type == kRoundMessage, "an order is a round or the end");
    LOCKSTEP_ASSIGN_OR_RETURN(const Round round, DecodeRound(message.payload));
    LOCKSTEP_RETURN_IF_ERROR(RunRound(link, round, rig));
  }
  link.journal().EnterPhase(Phase::kFinalize);
  rig.runners.clear();
  rig.beside.reset();
  rig.communicator.reset();
  return OkStatus();
}

}  // namespace

int RunWorker() {
  const Result<std::unique_ptr<WorkerLink>> link = WorkerLink::Open();
  if (!link.ok()) {
    fmt::print(stderr, "lockstep worker: {}\n", link.status().message());
    return static_cast<int>(ExitCodeOf(link.status().code()));
  }
  auto rig = std::make_unique<Rig>();
  const Status status = Serve(**link, *rig);
  if (status.ok()) {
    (*link)->journal().Exit(0);
    return 0;
  }
  const Status told = (*link)->Send({kErrorMessage, EncodeError(status)});
  if (!told.ok()) fmt::print(stderr, "lockstep worker: {}\n", status.message());
  const int code = static_cast<int>(ExitCodeOf(status.code()));
  (*link)->journal().Exit(code);
  // No destructors: finalizing a library that reported an error may hang.
  std::fflush(stderr);
  _exit(code);
}

}  // namespace lockstep
