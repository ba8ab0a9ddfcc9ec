#include "bench/harness/lean_step.h"

#include <utility>

#include "core/comm/forwarding_communicator.h"

namespace lockstep::bench::harness {
namespace {

// Silence is judged by the agent; a deadline here would only hide the journal's evidence.
Deadline Never() { return Deadline::AfterSeconds(86'400); }

// Nobody waits for a single operation: the engine orders them by events, as PyTorch does.
class NonblockingCommunicator final : public comm::ForwardingCommunicator {
 public:
  using comm::ForwardingCommunicator::ForwardingCommunicator;
  Status Enqueue(const collective::Operation& operation, const collective::Buffers& buffers,
                 device::Stream& stream) override {
    collective::Operation nonblocking = operation;
    nonblocking.blocking = collective::Blocking::kNonblocking;
    return comm::ForwardingCommunicator::Enqueue(nonblocking, buffers, stream);
  }
};

}  // namespace

LeanStep::LeanStep(const Bench& bench)
    : bench_(bench), streams_(comm::GraphStreams::Make(bench.device, bench.stream, *bench.beside)) {
  if (streams_->native()) {
    nonblocking_ = std::make_unique<NonblockingCommunicator>(bench.communicator);
  }
}

LeanStep::~LeanStep() = default;

ddp::EnginePorts LeanStep::Ports(const ddp::EnginePorts& real) {
  comm::Communicator& communicator = nonblocking_ != nullptr ? *nonblocking_ : real.communicator;
  return {communicator,        streams_->device(),        real.kernels,
          streams_->compute(), streams_->communication(), real.observer};
}

// The step ends on the stream that computes, which waits for the other one.
Status LeanStep::Await() { return bench_.communicator.Await(bench_.stream, Never()); }

Status LeanStep::Capture(const std::function<Status(std::int64_t* counter)>& program) {
  LOCKSTEP_ASSIGN_OR_RETURN(counter_, bench_.device.Allocate(sizeof(std::int64_t)));
  bench_.kernels.Zero(bench_.stream, counter_->data(), sizeof(std::int64_t));
  LOCKSTEP_RETURN_IF_ERROR(bench_.stream.Synchronize(Never()));
  LOCKSTEP_ASSIGN_OR_RETURN(captured_, bench_.communicator.CaptureDuring([&] {
    return streams_->Capture([&] { return program(static_cast<std::int64_t*>(counter_->data())); });
  }));
  return OkStatus();
}

Result<comm::Interval> LeanStep::Replay(Ticks& launched) {
  LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Replay(*captured_, bench_.stream, Never()));
  launched = bench_.communicator.last_launched();
  return bench_.communicator.last_interval();
}

}  // namespace lockstep::bench::harness
