// A random program of collectives and at most one fault: what a trial runs, and nothing of what
// must come out of it. Everything follows from a seed and a rule set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/collective.h"
#include "core/comm/sim/rules.h"
#include "core/ddp/training.h"
#include "stress/scenario/script.h"

namespace lockstep::stress::fuzz {

enum class FuzzFault : std::uint8_t {
  kNone,
  kSlow,   // sleeps for a while
  kPause,  // is stopped and continued
  // The rank ends, or never goes on.
  kExit,
  kThrow,
  kCrash,
  kKill,
  kStop,
  kHang,
  // It calls something else than the others.
  kSkip,
  kExtra,
  kWrongCount,
  kWrongType,
  kWrongRoot,
  kWrongOp,
  kWrongKind,
  kSwap,  // one collective and its next
};
inline constexpr int kFuzzFaults = static_cast<int>(FuzzFault::kSwap) + 1;
std::string_view NameOf(FuzzFault fault);
inline bool Diverges(FuzzFault fault) { return fault >= FuzzFault::kSkip; }
inline bool Recovers(FuzzFault fault) { return fault <= FuzzFault::kPause; }

// How a rank's collectives reach the library.
enum class StreamUse : std::uint8_t { kInline, kFifo, kTwoFifos };

struct FuzzTrial {
  std::uint64_t seed = 0;  // of the order of ranks, the network and the data, too
  comm::sim::SimRules rules = comm::sim::SimRules::kNccl;
  int ranks = 2;
  std::vector<scenario::ScriptCommunicator> communicators;  // the world first
  // Only kCollective, which may be a message. All ranks in this one order, each those of its
  // communicators: such a program cannot hang.
  std::vector<scenario::ScriptStep> steps;
  std::vector<std::int64_t> compute_ns;  // before each step, the same for every rank but for jitter
  StreamUse streams = StreamUse::kInline;
  // Of each step: its stream waits first for what is on the other one by then (kTwoFifos). The same
  // on all ranks, as the order of the steps is.
  std::vector<bool> waits = {};
  // Of each step: who sends (a rank of the communicator) where it is a message, whose operation is
  // a send to its root; -1: a collective. A step may be non-blocking, on all its ranks alike.
  std::vector<int> senders = {};
  int calls_an_await = 1;
  bool lingers = false;  // ranks that are done keep their connections

  // In place of steps: a healthy program of training. `at` counts the points that a rank reaches.
  std::optional<ddp::TrainingProgram> training;

  FuzzFault fault = FuzzFault::kNone;
  int faulty = 0;                   // the rank
  std::size_t at = 0;               // before (kExtra) or in place of its step of this index; for
                                    // ends: before its first step from here on
  bool at_init = false;             // of ends: before it connects
  std::int64_t at_ns = -1;          // kKill, kStop: at this time instead
  std::int64_t lasts_ns = 0;        // kSlow, kPause
  collective::Operation operation;  // what it calls instead
};

FuzzTrial DrawTrial(std::uint64_t seed, comm::sim::SimRules rules);

bool Includes(const scenario::ScriptCommunicator& communicator, int rank);

bool IsMessage(const collective::Operation& operation);
// Some call comes back before it is done.
bool HasNonblockingCalls(const FuzzTrial& trial);

// What a rank was meant to call, with the index of each step.
struct PlannedCall {
  std::size_t index = 0;  // of FuzzTrial::steps
  std::size_t communicator = 0;
  collective::Operation operation;
};
std::vector<PlannedCall> MeantCalls(const FuzzTrial& trial, int rank);
// What it calls: the same but for a fault that diverges.
std::vector<PlannedCall> RealCalls(const FuzzTrial& trial, int rank);

// As a scenario file: the program of every rank as it really is, and faults from outside.
std::string ScenarioText(const FuzzTrial& trial);

}  // namespace lockstep::stress::fuzz
