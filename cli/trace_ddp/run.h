// Runs a training program on every rank of this host and records what each rank enqueued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/comm/sim/rules.h"
#include "core/ddp/observer.h"
#include "core/ddp/training.h"
#include "core/journal/purpose.h"

namespace lockstep::cli::trace_ddp {

struct TracedCall {
  std::uint64_t sequence = 0;  // on the only communicator, from 0
  collective::Operation operation;
  journal::Annotation annotation;
};

struct TracedSection {
  ddp::Section section;
  std::vector<TracedCall> calls = {};
};

// The leading elements of a parameter and of its gradient at the end; none: .grad is None.
struct FinalTensor {
  std::string name;
  std::vector<double> values;
  std::optional<std::vector<double>> gradient;
  static void Describe(auto& fields, auto& tensor) {  // for control::Encoder
    fields(tensor.name, tensor.values, tensor.gradient);
  }
};
inline constexpr std::int64_t kFinalElements = 64;  // of each tensor, at most

// How a rank ended. Only virtual time proves that a wait lasts for ever.
enum class TraceEnd : std::uint8_t {
  kFinished,
  kFailed,         // it raised an error, or its process crashed
  kHung,           // it would wait for ever
  kSuspectedHang,  // it timed out while all others had been waiting, too, or had ended
  kTimedOut,       // it timed out, and that may be no hang: Conclude (rank_history.h)
  kLostPeers,      // another rank had timed out or was killed; or it could not connect
  kNotEnded,       // its process was killed, or did nothing for longer than the patience
};
std::string_view NameOf(TraceEnd end);

struct TracedRank {
  std::vector<TracedSection> sections = {};
  Status status = OkStatus();  // what the program raised
  TraceEnd end = TraceEnd::kFinished;
  std::string message = {};               // of another end: one line
  std::vector<FinalTensor> tensors = {};  // none when it did not end

  bool finished() const { return end == TraceEnd::kFinished; }
};

// From now on an allocation that fails ends this process, with one line and exit code 4. An
// exception would take simulated ranks apart while others use what they hold.
void EndWhereMemoryLacks();

// By rank. Errors: the model is unknown, or the machine lacks what it takes; never what the program
// does.
using TracedRanks = std::vector<TracedRank>;

// kFailed: the program failed or hangs, at least by suspicion. kInconclusive: a rank timed out, or
// did not end, and nothing speaks against the program.
ExitCode ExitCodeOf(const TracedRanks& ranks);

// core/comm/sim: in virtual time, so that a hang is known at once.
Result<TracedRanks> TraceWithSim(const ddp::TrainingProgram& program, int ranks,
                                 comm::sim::SimRules rules);

// gloo over loopback, a process a rank. A call that waits longer than the timeout fails. When for
// long no rank does anything, the processes that have not ended are named and ended.
// kUnsupported when this build has no gloo.
Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram& program, int ranks,
                                  double timeout_seconds);

}  // namespace lockstep::cli::trace_ddp
