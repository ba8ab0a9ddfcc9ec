// A worker of a benchmark: it gets the plan, connects with what the plan says of the library,
// allocates, and runs the rounds it is told. An error is told to the agent before it leaves.
#include "bench/harness/worker.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "bench/measure/case_runner.h"
#include "bench/measure/protocol.h"
#include "bench/plan/plan.h"
#include "core/comm/backends.h"
#include "core/comm/nccl/choices.h"
#include "core/comm/recorded.h"
#include "core/journal/device_marks.h"
#include "session/session.h"

namespace lockstep::bench::harness {
namespace {

constexpr double kOrderSeconds = 86'400;  // the worker dies with its agent, so this is never hit
constexpr double kConnectSeconds = 60;

// Everything a rank measures with, in the order in which it is made.
struct WorkerContext {
  plan::Plan plan;
  const comm::Backend* backend = nullptr;
  comm::Platform platform;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<device::Stream>
      side_stream;  // only where it is needed: a thread makes others slower
  std::unique_ptr<device::Buffer> send;
  std::unique_ptr<device::Buffer> recv;
  std::optional<measure::InputArena> inputs;
  std::uint32_t stamp = 0;
  std::unique_ptr<comm::RecordedCommunicator> communicator;
  std::string marks;
  std::optional<measure::Bench> bench;
  measure::StepFactory steps;
  std::map<std::uint32_t, measure::CaseRunner> runners;
};

// Only where no case needs it all memory is left to the ports.
bool HostTouches(const plan::Plan& plan) {
  return std::ranges::any_of(plan.cases, &plan::PlannedCase::host_access);
}

// Who notes what the device begins and ends, in words; empty where the host runs everything.
std::string MarkDevice(worker::WorkerLink& link, WorkerContext& context) {
  if (context.platform.gpu_bus.empty()) return "";
  if (!context.plan.nccl.marks) {
    journal::SetMarkMethod(link.device_marks(), journal::MarkMethod::kOff);
  } else {
    const Result<bool> marked =
        context.communicator->MarkOn(link.device_marks(), *context.platform.device);
    if (!marked.ok()) return "none: " + marked.status().message();
    if (!*marked) return "";
  }
  return std::string(journal::NameOf(journal::ReadDeviceMarks(link.device_marks()).method));
}

Status Connect(worker::WorkerLink& link, const comm::Backend& backend, WorkerContext& context) {
  link.BeginConnecting();
  comm::ConnectRequest request{
      .rank = link.rank(), .size = link.size(), .meeting = &link.meeting()};
  LOCKSTEP_ASSIGN_OR_RETURN(request.host, worker::WorkerLink::ListenAddress());
  request.threaded_streams = plan::CommunicatesOnThreads(context.plan);
  LOCKSTEP_ASSIGN_OR_RETURN(context.platform,
                            backend.open_platform({link.local_rank(), HostTouches(context.plan)}));
  link.Introduce({context.platform.gpu_bus, context.platform.log_file});
  request.device = context.platform.device.get();
  Result<std::unique_ptr<comm::Communicator>> connected =
      backend.connect(request, Deadline::AfterSeconds(kConnectSeconds));
  link.EndConnecting();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<comm::Communicator> communicator, std::move(connected));
  context.communicator =
      std::make_unique<comm::RecordedCommunicator>(std::move(communicator), link.journal(), 0);
  context.marks = MarkDevice(link, context);
  return OkStatus();
}

// What only the library and the device could tell, before anything is measured.
Status CheckOperations(const WorkerContext& context) {
  for (const plan::PlannedCase& planned : context.plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      LOCKSTEP_RETURN_IF_ERROR(
          context.communicator->Supports(comm::AsSupported(*context.backend, operation)));
    }
  }
  return OkStatus();
}

bool NeedsThread(const WorkerContext& context) {
  if (plan::CommunicatesOnThreads(context.plan)) return true;
  for (const plan::PlannedCase& planned : context.plan.cases) {
    for (const collective::Operation& operation : planned.operations) {
      if (comm::AsSupported(*context.backend, operation).blocking != operation.blocking)
        return true;
    }
  }
  return false;
}

Status Allocate(worker::WorkerLink& link, WorkerContext& context) {
  link.journal().EnterPhase(journal::Phase::kAllocate);
  device::Device& device = *context.platform.device;
  LOCKSTEP_ASSIGN_OR_RETURN(context.send,
                            device.Allocate(plan::AlignedBytes(context.plan.send_buffer_bytes)));
  LOCKSTEP_ASSIGN_OR_RETURN(context.recv, device.Allocate(context.plan.recv_buffer_bytes));
  context.inputs.emplace(context.send->data(), plan::AlignedBytes(context.plan.send_buffer_bytes),
                         link.rank());
  context.stream = device.NewInlineStream();
  if (NeedsThread(context)) context.side_stream = device.NewStream();
  context.bench.emplace(measure::Bench{link, *context.communicator, *context.backend, context.plan,
                                       device, *context.platform.kernels, *context.stream,
                                       context.side_stream.get(), *context.inputs,
                                       context.recv->data(), context.platform.pattern_memory.get(),
                                       context.stamp, CalibrateTicks().ns_per_tick});
  return OkStatus();
}

Status RunRound(worker::WorkerLink& link, const measure::Round& round, WorkerContext& context) {
  for (const measure::Batch& batch : round.batches) {
    auto runner = context.runners.find(batch.case_index);
    if (runner == context.runners.end()) {
      measure::CaseRunner made(*context.bench, batch.case_index, context.steps(batch.case_index));
      runner = context.runners.emplace(batch.case_index, std::move(made)).first;
    }
    LOCKSTEP_RETURN_IF_ERROR(runner->second.RunBatch(batch, round.number));
  }
  return link.Send({measure::kRoundDoneMessage, ""});
}

Status Prepare(worker::WorkerLink& link, const measure::Kind& kind, WorkerContext& context) {
  link.journal().Idle();
  LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                            link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
  LOCKSTEP_CHECK(message.type == measure::kPlanMessage, "the plan comes first");
  LOCKSTEP_ASSIGN_OR_RETURN(context.plan, plan::PlanFromJson(message.payload));
  LOCKSTEP_ASSIGN_OR_RETURN(context.backend, comm::FindBackend("--backend", context.plan.backend));
  // The environment may say otherwise: the plan is what was hashed.
  LOCKSTEP_RETURN_IF_ERROR(comm::nccl::ExportNcclChoices(context.plan.nccl));
  LOCKSTEP_RETURN_IF_ERROR(Connect(link, *context.backend, context));
  LOCKSTEP_RETURN_IF_ERROR(CheckOperations(context));
  LOCKSTEP_RETURN_IF_ERROR(Allocate(link, context));
  context.steps = kind.StepsOf(*context.bench);
  return link.Send({measure::kReadyMessage,
                    worker::WorkerFacts(context.backend->name, context.backend->version(),
                                        context.platform.device->name(), context.platform.remark,
                                        context.marks)});
}

// Obeys until the scheduler says that it is over.
Status Serve(worker::WorkerLink& link, const measure::Kind& kind, WorkerContext& context) {
  LOCKSTEP_RETURN_IF_ERROR(Prepare(link, kind, context));
  for (;;) {
    link.journal().Idle();
    LOCKSTEP_ASSIGN_OR_RETURN(const control::Message message,
                              link.Receive(Deadline::AfterSeconds(kOrderSeconds)));
    if (message.type == measure::kFinishMessage) break;
    LOCKSTEP_CHECK(message.type == measure::kRoundMessage, "an order is a round or the end");
    LOCKSTEP_ASSIGN_OR_RETURN(const measure::Round round, measure::DecodeRound(message.payload));
    LOCKSTEP_RETURN_IF_ERROR(RunRound(link, round, context));
  }
  link.journal().EnterPhase(journal::Phase::kFinalize);
  context.runners.clear();
  context.side_stream.reset();
  context.communicator.reset();
  return OkStatus();
}

}  // namespace

int RunWorker(const measure::Kind& kind, worker::WorkerLink& link) {
  auto context = std::make_unique<WorkerContext>();
  const Status status = Serve(link, kind, *context);
  if (!status.ok()) {
    session::EndWorker(link, status, {measure::kErrorMessage, measure::EncodeError(status)});
  }
  link.journal().Exit(0);
  return 0;
}

}  // namespace lockstep::bench::harness
