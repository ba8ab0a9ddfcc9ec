// The two sides of "what do the device's marks cost": one communicator with and without them.
#ifndef LOCKSTEP_BENCH_MARKS_MARK_SIDES_H_
#define LOCKSTEP_BENCH_MARKS_MARK_SIDES_H_

#include <cstddef>
#include <memory>
#include <span>

#include "bench/marks/paired_cost.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"
#include "core/device/device.h"
#include "core/journal/device_marks.h"

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
  virtual ~MarkSides() = default;
  virtual journal::MarkMethod method() const = 0;
  // Collective: calls the work once, and captures it if it is to be a graph. Outlives neither this
  // object nor the buffers.
  virtual Result<std::unique_ptr<PairSide>> Make(const MarkedWork& work, bool marked) = 0;
};

// All arguments outlive the result; `marks` is kDeviceMarksBytes, page-aligned, and outlives the
// device. kUnsupported when the device does not mark.
Result<std::unique_ptr<MarkSides>> MakeMarkSides(comm::Communicator& communicator,
                                                 device::Device& device, device::Stream& stream,
                                                 std::span<std::byte> marks);

}  // namespace lockstep::bench::marks

#endif  // LOCKSTEP_BENCH_MARKS_MARK_SIDES_H_
