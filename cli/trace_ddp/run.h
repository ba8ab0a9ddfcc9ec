// Runs a training program on every rank of this host and records what each rank enqueued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

struct TracedRank {
  std::vector<TracedSection> sections = {};
  Status status = OkStatus();             // ok: finished; else what it raised
  std::string waits = {};                 // not empty: it would wait for ever, and for what
  std::vector<FinalTensor> tensors = {};  // none when it waits

  bool finished() const { return status.ok() && waits.empty(); }
};

// By rank. Errors: the model is unknown, or the machine lacks what it takes; never what the program
// does.
using TracedRanks = std::vector<TracedRank>;

// core/comm/sim: in virtual time, so that a hang is known at once.
Result<TracedRanks> TraceWithSim(const ddp::TrainingProgram& program, int ranks,
                                 comm::sim::SimRules rules);

// gloo over loopback, a process a rank; what waits longer than the timeout is taken to hang.
// kUnsupported when this build has no gloo.
Result<TracedRanks> TraceWithGloo(const ddp::TrainingProgram& program, int ranks,
                                  double timeout_seconds);

}  // namespace lockstep::cli::trace_ddp
