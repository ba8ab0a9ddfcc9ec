// How a training step runs when nobody looks into it: its streams have cheap events, whose times
// are not known, and it can be kept as one graph that is replayed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "bench/measure/step.h"
#include "core/comm/graph_streams.h"
#include "core/ddp/launcher.h"

namespace lockstep::bench::ddp_step {

class UntracedStep {
 public:
  explicit UntracedStep(const measure::Bench& bench);
  ~UntracedStep();

  // For an engine; what it is given stays where it is, so buckets have memory of their own.
  ddp::EnginePorts Ports(const ddp::EnginePorts& real);
  // Waits until everything is done that the engine put on the streams.
  Status Await();

  // Keeps what `program` puts on the engine's streams. It may count in `counter`, an integer of the
  // device's memory that is 0 before the first replay. Everything that the program's collectives
  // need must be there: it has run before.
  Status Capture(const std::function<Status(std::int64_t* counter)>& program);
  bool captured() const { return captured_.has_value(); }
  // Once more; `launched`: when the host was done with it.
  Result<comm::Interval> Replay(Ticks& launched);

 private:
  measure::Bench bench_;
  std::unique_ptr<comm::GraphStreams> streams_;
  std::unique_ptr<comm::Communicator> nonblocking_;  // where streams have handles
  std::unique_ptr<device::Buffer> counter_;
  std::optional<comm::CapturedCalls> captured_;
};

}  // namespace lockstep::bench::ddp_step
