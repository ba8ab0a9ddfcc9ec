// The two sides of "what do the device's marks cost": one communicator with and without them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "bench/marks/paired_cost.h"
#include "core/base/clock.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/comm/recorded.h"
#include "core/device/device.h"
#include "core/journal/device_marks.h"
#include "core/journal/journal.h"

namespace lockstep::bench::marks {

struct MarkedWork {
  collective::Operation operation;
  collective::Buffers buffers;
  // 0: called one by one and waited for. Else so many calls are one graph, which is replayed; a
  // work is one of its calls.
  int calls_in_graph = 0;
};

class MarkSides {
 public:
  // All arguments outlive the result; `marks` is kDeviceMarksBytes, page-aligned, and outlives the
  // device. kUnsupported when the device does not mark.
  static Result<std::unique_ptr<MarkSides>> Open(comm::Communicator& communicator,
                                                 device::Device& device, device::Stream& stream,
                                                 std::span<std::byte> marks);

  journal::MarkMethod method() const { return method_; }
  // Collective: calls the work once, and captures it if it is to be a graph. Outlives neither this
  // object nor the buffers.
  Result<std::unique_ptr<PairSide>> Make(const MarkedWork& work, bool marked);

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // A communicator with a journal of its own, as a worker's; both sides call the library's one.
  struct Journaled {
    explicit Journaled(comm::Communicator& inner);
    std::vector<Line> memory;
    journal::JournalWriter journal;
    comm::RecordedCommunicator communicator;
  };

  MarkSides(comm::Communicator& communicator, device::Stream& stream)
      : plain_(communicator), marked_(communicator), stream_(stream) {}

  Journaled plain_;
  Journaled marked_;
  device::Stream& stream_;
  journal::MarkMethod method_ = journal::MarkMethod::kNone;
  const TickScale scale_ = CalibrateTicks();
};

}  // namespace lockstep::bench::marks
