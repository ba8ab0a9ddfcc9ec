// Two streams whose work can be kept as one graph: those of a training step, which computes on one
// and communicates on the other.
#pragma once

#include <functional>
#include <memory>

#include "core/base/status.h"
#include "core/device/device.h"
#include "core/device/native_stream.h"

namespace lockstep::comm {

// Outside a capture they pass on what they get. In one, it is kept and not run: launches, and
// on streams without handles work of the host's, in the order that events between the two ask for.
// What cannot be kept makes the capture fail in one line: work of the host where a device works,
// waiting, memory.
//
// Where the real streams have handles, events between these are points of the streams, as cheap as
// PyTorch's: no time is known of them, and the host does not hear of them. The compute stream is
// then one that nobody waits for, and operations on the other one must be non-blocking.
class GraphStreams {
 public:
  // The real ones outlive this.
  static std::unique_ptr<GraphStreams> Make(device::Device& device, device::Stream& compute,
                                            device::Stream& communication);
  virtual ~GraphStreams() = default;

  // Whose events are for these streams, and of no other's.
  virtual device::Device& device() = 0;
  virtual device::Stream& compute() = 0;
  virtual device::Stream& communication() = 0;
  virtual bool native() const = 0;

  // Keeps what `program` puts on the two, which has to go on afterwards from where the compute
  // stream is: the graph ends when both are done. Both are idle before.
  virtual Result<std::unique_ptr<device::StreamGraph>> Capture(
      const std::function<Status()>& program) = 0;
};

}  // namespace lockstep::comm
