// Runs the batches of one case on a rank's communicator: the timed loop.
#ifndef LOCKSTEP_BENCH_HARNESS_CASE_RUNNER_H_
#define LOCKSTEP_BENCH_HARNESS_CASE_RUNNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/input_arena.h"
#include "bench/harness/protocol.h"
#include "core/collective/pattern.h"
#include "core/comm/backends.h"
#include "core/comm/recorded.h"
#include "core/launch/worker_link.h"
#include "core/plan/plan.h"

namespace lockstep {

// What a rank measures with; outlives every CaseRunner.
struct Bench {
  WorkerLink& link;
  RecordedCommunicator& communicator;
  const Backend& backend;
  Stream& stream;            // inline
  Stream* beside = nullptr;  // a thread: for what the library has no non-blocking call for
  InputArena& inputs;        // over the send buffer
  void* recv = nullptr;      // plan.recv_buffer_bytes
  std::uint32_t& stamp;      // counts iterations of all cases, the same on every rank
};

// An iteration has the shape of OSU's loop, so that numbers can be compared:
//   rewrite a window of the inputs, barrier | entry, collective(s), exit | compare
// where only what is between the bars is timed.
class CaseRunner {
 public:
  CaseRunner(const Bench& bench, const Plan& plan, std::uint32_t case_index);

  // Samples, comparisons and the cost of the batch go to the outbox. The error is the library's.
  Status RunBatch(const Batch& batch, std::uint32_t round);

 private:
  // One operation and its place in the buffers.
  struct Slot {
    Operation operation;
    Buffers buffers;
    Pattern pattern;
    ArenaRange input;  // of the arena (out of place)
    std::int64_t recv_bytes = 0;
    bool sends = true;         // this rank's input matters
    std::int64_t windows = 1;  // of the rotation
    std::uint32_t stamp = 0;   // of the whole buffer (in place)
  };

  void AddSlots(const PlannedCase& planned);
  void Prepare();
  void Rewrite(bool first, bool warmup);
  void RewriteSlot(Slot& slot, bool inputs);
  void RewriteInPlace(Slot& slot);
  Status Barrier();
  Result<Interval> RunOperations();
  void Compare(bool warmup);
  CheckReport CheckSlot(const Slot& slot) const;
  void Report(const std::string& record);

  Bench bench_;
  const Plan& plan_;
  std::uint32_t case_index_;
  bool in_place_;
  bool checks_;
  Stream* stream_;  // of the operations
  std::vector<Slot> slots_;
  std::int64_t checked_ = 0;  // elements of this batch
  std::int64_t wrong_ = 0;    // … that differ
  int wrong_records_ = 0;     // located, of this case
};

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_CASE_RUNNER_H_
