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
#include "bench/plan/plan.h"
#include "core/comm/backends.h"
#include "core/comm/nccl/choices.h"
#include "core/comm/recorded.h"
#include "core/coordinator/machine_facts.h"
#include "core/journal/device_marks.h"
#include "core/worker/worker_link.h"

namespace lockstep::bench::harness {
namespace {

constexpr double kOrderSeconds = 86'400;  // the worker dies with its agent, so this is never hit
constexpr double kConnectSeconds = 60;

// Everything a rank measures with, in the order in which it is made.
struct Rig {
  plan::Plan plan;
  const comm::Backend* backend = nullptr;
  comm::Platform platform;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<device::Stream> beside;  // only where it is needed: a thread makes others slower
  std::unique_ptr<device::Buffer> send;
  std::unique_ptr<device::Buffer> recv;
  std::optional<InputArena> inputs;
  std::uint32_t stamp = 0;
  std::unique_ptr<comm::RecordedCommunicator> communicator;
  std::string marks;
  std::optional<Bench> bench;
  std::optional<ModelShelf> shelf;
  std::map<std::uint32_t, CaseRunner> runners;
};

// Only a plan of nothing but collectives, messages and steps leaves all memory to the ports; and
// PowerSGD's factors are the host's work.
bool HostTouches(const plan::Plan& plan) {
  return std::any_of(plan.cases.begin(), plan.cases.end(), [](const plan::PlannedCase& planned) {
    const auto* const step = std::get_if<plan::DdpStep>(&planned.step);
    if (step != nullptr) return step->comm_hook == "powersgd";
    return !std::holds_alternative<plan::CollectiveCalls>(planned.step) &&
           !std::holds_alternative<plan::LinkExchange>(planned.step);
  });
}

// Who notes what the device begins and ends, in words; empty where the host runs everything.
std::string MarkDevice(worker::WorkerLink& link, Rig& rig) {
  if (!comm::nccl::NcclChoicesFromEnvironment().marks) return "none: --no-device-marks";
  const Result<bool> marked = rig.communicator->MarkOn(link.device_marks(), *rig.platform.device);
  if (!marked.ok()) return "none: " + marked.status().message();
  return *marked
             ? std::string(journal::NameOf(journal::ReadDeviceMarks(link.device_marks()).method))
             : "";
}

Status Connect(worker::WorkerLink& link, const comm::Backend& backend, Rig& rig) {
  link.journal().EnterPhase(journal::Phase::kConnect);
  comm::ConnectRequest request;
  request.rank = link.rank();
  request.size = link.size();
  request.meeting = &link.meeting();
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, worker::WorkerLink::ListenAddress());
  request.threaded_streams = plan::CommunicatesOnThreads(rig.plan);
  LOCKSTEP_ASSIGN_OR_RETURN(rig.platform,
                            backend.open_platform({link.local_rank(), HostTouches(rig.plan)}));
  link.Introduce({rig.platform.gpu_bus, rig.platform.log_file});
  request.device = rig.platform.device.get();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> communicator,
                            backend.connect(request, Deadline::AfterSeconds(kConnectSeconds)));
  rig.communicator =
      std::make_unique<comm::RecordedCommunicator>(std::move(communicator), link.journal(), 0);
  rig.marks = MarkDevice(link, rig);
  return OkStatus();
}

// What only the library and the device could tell, before anything is measured.
Status CheckOperations(const Rig& rig) {
  for (const plan::PlannedCase& planned : rig.plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      LOCKSTEP_RETURN_IF_ERROR(
          rig.communicator->Supports(comm::AsSupported(*rig.backend, operation)));
    }
  }
  return OkStatus();
}

bool NeedsThread(const Rig& rig) {
  if (plan::CommunicatesOnThreads(rig.plan)) return true;
  for (const plan::PlannedCase& planned : rig.plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      if (comm::AsSupported(*rig.backend, operation).blocking != operation.blocking) return true;
    }
  }
  return false;
}

Status Allocate(worker::WorkerLink& link, Rig& rig) {
  link.journal().EnterPhase(journal::Phase::kAllocate);
  device::Device& device = *rig.platform.device;
  LOCKSTEP_ASSIGN_OR_RETURN(rig.send,
                            device.Allocate(plan::AlignedBytes(rig.plan.send_buffer_bytes)));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.recv, device.Allocate(rig.plan.recv_buffer_bytes));
  rig.inputs.emplace(rig.send->data(), plan::AlignedBytes(rig.plan.send_buffer_bytes), link.rank());
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
  const plan::StepPlan& step = rig.plan.cases[case_index].step;
  if (std::holds_alternative<plan::DdpStep>(step)) {
    return std::make_unique<DdpStepRunner>(*rig.bench, case_index, *rig.shelf);
  }
  if (std::holds_alternative<plan::StateBroadcast>(step)) {
    return std::make_unique<StateBroadcastStep>(*rig.bench, case_index, *rig.shelf);
  }
  if (std::holds_alternative<plan::ShardedLoad>(step)) {
    return std::make_unique<LoadStep>(*rig.bench, case_index);
  }
  if (std::holds_alternative<plan::LinkExchange>(step)) {
    return std::make_unique<LinkStep>(*rig.bench, case_index);
  }
  return std::make_unique<CollectiveStep>(*rig.bench, case_index,
                                          comm::nccl::NcclChoicesFromEnvironment().graphs);
}

Status RunRound(worker::WorkerLink& link, const Round& round, Rig& rig) {
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

Status Prepare(worker::WorkerLink& link, Rig& rig) {
  link.journal().Idle();
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
  LOCKSTEP_CHECK(message.type == kPlanMessage, "the plan comes first");
  LOCKSTEP_ASSIGN_OR_RETURN(rig.plan, plan::PlanFromJson(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(rig.backend, comm::FindBackend("--backend", rig.plan.backend));
  LOCKSTEP_RETURN_IF_ERROR(Connect(link, *rig.backend, rig));
  LOCKSTEP_RETURN_IF_ERROR(CheckOperations(rig));
  LOCKSTEP_RETURN_IF_ERROR(Allocate(link, rig));
  return link.Send({kReadyMessage, worker::WorkerFacts(rig.backend->name, rig.backend->version(),
                                                       rig.platform.device->name(),
                                                       rig.platform.remark, rig.marks)});
}

// Obeys until the conductor says that it is over.
Status Serve(worker::WorkerLink& link, Rig& rig) {
  LOCKSTEP_RETURN_IF_ERROR(Prepare(link, rig));
  for (;;) {
    link.journal().Idle();
    LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                              link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
    if (message.type == kFinishMessage) break;
    LOCKSTEP_CHECK(message.type == kRoundMessage, "an order is a round or the end");
    LOCKSTEP_ASSIGN_OR_RETURN(const Round round, DecodeRound(message.payload));
    LOCKSTEP_RETURN_IF_ERROR(RunRound(link, round, rig));
  }
  link.journal().EnterPhase(journal::Phase::kFinalize);
  rig.runners.clear();
  rig.beside.reset();
  rig.communicator.reset();
  return OkStatus();
}

}  // namespace

int RunWorker() {
  const Result<std::unique_ptr<worker::WorkerLink>> link = worker::WorkerLink::Open();
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

}  // namespace lockstep::bench::harness
