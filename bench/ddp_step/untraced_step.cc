// Streams without times and graphs of a step, over core/comm/graph_streams.h.
#include "bench/ddp_step/untraced_step.h"

#include "core/comm/forwarding_communicator.h"

namespace lockstep::bench::ddp_step {
namespace {

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

UntracedStep::UntracedStep(const measure::Bench& bench)
    : bench_(bench),
      streams_(comm::GraphStreams::Make(bench.device, bench.stream, *bench.side_stream)) {
  if (streams_->native()) {
    nonblocking_ = std::make_unique<NonblockingCommunicator>(bench.communicator);
  }
}

UntracedStep::~UntracedStep() = default;

ddp::EnginePorts UntracedStep::Ports(const ddp::EnginePorts& real) {
  comm::Communicator& communicator = nonblocking_ != nullptr ? *nonblocking_ : real.communicator;
  return {communicator,        streams_->device(),        real.kernels,
          streams_->compute(), streams_->communication(), real.observer};
}

// The step ends on the stream that computes, which waits for the other one.
Status UntracedStep::Await() { return bench_.communicator.Await(bench_.stream, measure::Never()); }

Status UntracedStep::Capture(const std::function<Status(std::int64_t* counter)>& program) {
  LOCKSTEP_ASSIGN_OR_RETURN(counter_, bench_.device.Allocate(sizeof(std::int64_t)));
  bench_.kernels.Zero(bench_.stream, counter_->data(), sizeof(std::int64_t));
  LOCKSTEP_RETURN_IF_ERROR(bench_.stream.Synchronize(measure::Never()));
  LOCKSTEP_ASSIGN_OR_RETURN(captured_, bench_.communicator.CaptureDuring([&] {
    return streams_->Capture([&] { return program(static_cast<std::int64_t*>(counter_->data())); });
  }));
  return OkStatus();
}

Result<comm::Interval> UntracedStep::Replay(Ticks& launched) {
  LOCKSTEP_RETURN_IF_ERROR(bench_.communicator.Replay(*captured_, bench_.stream, measure::Never()));
  launched = bench_.communicator.last_launched();
  return bench_.communicator.last_interval();
}

}  // namespace lockstep::bench::ddp_step
