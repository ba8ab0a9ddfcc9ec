// The port between the timed loop and what an iteration consists of: collectives, a training step,
// a broadcast of a model's state, a load, messages. Everything else (rounds, outbox, hangs, store,
// reports) is the same for all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/input_arena.h"
#include "bench/plan/plan.h"
#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/collective/pattern.h"
#include "core/comm/backends.h"
#include "core/comm/recorded.h"
#include "core/device/device.h"
#include "core/device/kernels.h"
#include "core/worker/worker_link.h"

namespace lockstep::bench::measure {

// Silence is judged by the agent; a deadline in a step would only hide the journal's evidence.
inline Deadline Never() { return Deadline::AfterSeconds(86'400); }

// When all ranks meet in a barrier: before a visit's first iteration, before every one, or within
// Run, which then begins with it.
enum class Meeting { kVisit, kIteration, kRun };

// What a rank measures with; outlives every Step.
struct Bench {
  worker::WorkerLink& link;
  comm::RecordedCommunicator& communicator;
  const comm::Backend& backend;
  const plan::Plan& plan;
  device::Device& device;
  device::Kernels& kernels;
  device::Stream& stream;                               // inline
  device::Stream* side_stream = nullptr;                // a thread, where the plan needs one
  InputArena& inputs;                                   // over the send buffer
  void* recv = nullptr;                                 // plan.recv_buffer_bytes
  collective::PatternMemory* pattern_memory = nullptr;  // of both; nullptr: the host's
  std::uint32_t& stamp;  // counts iterations of all cases, the same on every rank
  double ns_per_tick = 1;

  bool checks() const {
    return plan.check != plan::CheckMode::kOff && communicator.capabilities().moves_data;
  }
  // Windows of the rotation in `bytes`: many enough that rewriting one leaves the caches as they
  // were, few enough that every element gets its turn soon.
  std::int64_t WindowsOf(std::int64_t bytes) const {
    constexpr std::int64_t kMost = 64;
    if (plan.check == plan::CheckMode::kFull) return 1;
    return std::clamp<std::int64_t>(bytes / InputArena::kGranuleBytes, 1, kMost);
  }
  double Ns(Ticks from, Ticks to) const { return static_cast<double>(to - from) * ns_per_tick; }
};

// What the comparison of iterations found.
struct Comparison {
  struct Located {
    std::int64_t operation = 0;  // of the planned case
    std::int64_t element = 0;
    std::string expected;
    std::string got;
  };
  std::int64_t checked = 0;
  std::int64_t wrong = 0;
  std::vector<Located> located;  // the first wrong element of an operation

  void Add(std::int64_t operation, const collective::CheckReport& report) {
    checked += report.checked;
    wrong += report.wrong;
    if (report.wrong == 0) return;
    const collective::WrongElement& first = report.first.front();
    located.push_back({operation, first.element, first.expected, first.got});
  }
};

// One case on one rank. Errors are the library's, or the environment's.
class Step {
 public:
  virtual ~Step() = default;
  // A visit begins. The first one also does what precedes the iterations that count (DDP's
  // constructor and its first iterations).
  virtual Status Prepare() = 0;
  // Before every iteration and its barrier. `first`: of the visit.
  virtual Status Rewrite(bool first, bool warmup) = 0;
  // The timed iteration.
  virtual Result<comm::Interval> Run() = 0;
  // After it, untimed: what it got is compared with what is right.
  virtual void Compare(Comparison& comparison) = 0;
  // Between a comparison and a timed iteration: brings caches back to what an iteration leaves.
  virtual Status Settle() { return OkStatus(); }
  virtual Meeting meeting() const { return Meeting::kIteration; }
  // Appends the figures of the last Run, one for each of the case's parts.
  virtual Status TakeParts(std::vector<double>& values) {
    return static_cast<void>(values), OkStatus();
  }
};

}  // namespace lockstep::bench::measure
