// The communicator port: collectives among ranks, stream-ordered and asynchronous like NCCL on
// every backend.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/device/device.h"

namespace lockstep::comm {

using collective::Blocking;
using collective::Buffers;
using collective::Collective;
using collective::DataType;
using collective::Operation;
using collective::Reduction;
using device::Stream;

// What a backend can do by its nature. Asked before a plan is made, so that a user learns of it in
// one line instead of in the middle of a run.
struct Capabilities {
  std::string_view backend;  // "mpi", "gloo", "null"
  bool moves_data = true;    // false: results are not computed, so nothing can be checked
  bool host_moves = true;    // processors of the host move the data, through their caches
  bool can_abort = false;    // Abort() frees the ranks that wait for this one
  // kUnsupported with a one-line reason, or ok.
  Status (*supports)(const Operation& operation) = nullptr;
};

// When an operation ran on its stream: stamps taken right before and right after the library's
// call, inside all of our own bookkeeping. This interval is the sample of a benchmark.
struct Interval {
  Ticks entry = 0;
  Ticks exit = 0;
};

// Ranks 0..size-1 that call the same collectives in the same order. Not thread-safe: one thread
// enqueues. Errors of the library are kSystemFailed with its own text.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual const Capabilities& capabilities() const = 0;
  // As capabilities().supports, of this connection: some things only the library that was loaded
  // and the device tell. Enqueue refuses the same.
  virtual Status Supports(const Operation& operation) const {
    return capabilities().supports(operation);
  }
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Puts the operation on the stream. On an inline stream a blocking operation is complete on
  // return, and its error is returned (and fails the stream). Buffers must live until the
  // stream got past it; those of non-blocking operations between two Awaits must not overlap.
  // The stream is not kept beyond the call.
  virtual Status Enqueue(const Operation& operation, const Buffers& buffers, Stream& stream) = 0;
  // Enqueue on an inline stream, and when it ran. Backends whose own work would count stamp inside.
  virtual Status EnqueueTimed(const Operation& operation, const Buffers& buffers, Stream& stream,
                              Interval& call) {
    call.entry = NowTicks();
    Status status = Enqueue(operation, buffers, stream);
    call.exit = NowTicks();
    return status;
  }
  // Waits until all operations enqueued on this stream are complete (posts and progresses
  // non-blocking ones). kDeadlineExceeded leaves the communicator unusable but for Abort.
  virtual Status Await(Stream& stream, Deadline deadline) = 0;
  // Operations between the two, on this thread and inline streams, run together when the group
  // ends, where the library has groups (NCCL): a send and a receive do not wait for each other.
  virtual Status StartGroup() { return OkStatus(); }
  virtual Status EndGroup() { return OkStatus(); }
  // Frees ranks that wait, as far as the backend can (capabilities().can_abort). An error: the
  // library did not give the communicator up, or did not come back from it.
  virtual Status Abort() = 0;
  // A communicator of the ranks with the same color, ordered by key, then rank. Collective over
  // all ranks. A negative color: this rank is in none, and the result holds nullptr.
  virtual Result<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) = 0;
};

// Why a call is wrong, if it is: see ValidateCall.
Status ExamineCall(const Operation& operation, const Buffers& buffers, int rank, int size);

// What every backend asks before it acts: kInvalidInput for a negative count, a root that is no
// rank and a missing buffer. Inline, because it lies inside measured intervals.
inline Status ValidateCall(const Operation& operation, const Buffers& buffers, int rank, int size) {
  const bool surely_right = operation.count >= 0 && operation.root >= 0 && operation.root < size &&
                            buffers.send != nullptr && buffers.recv != nullptr;
  if (surely_right) [[likely]]
    return OkStatus();
  return ExamineCall(operation, buffers, rank, size);
}

// Where the ranks of a new communicator exchange addresses: a key-value store that all of them
// reach and that does not depend on the health of the system under test.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  virtual Result<std::string> Get(const std::string& key, Deadline deadline) = 0;  // waits for it
};

// For a library that has no split: the ranks tell each other color and key through the meeting, and
// each computes its group.
struct SplitGroup {
  int rank = -1;  // -1: in none
  int size = 0;
  std::string prefix;  // of the meeting's keys, unique to the group
};

// Collective over the `size` ranks that share `prefix`, which must be new for every split.
// Ordered by key, then rank; a negative color is in no group.
Result<SplitGroup> AgreeOnGroup(Meeting& meeting, const std::string& prefix, int rank, int size,
                                int color, int key, Deadline deadline);

}  // namespace lockstep::comm
