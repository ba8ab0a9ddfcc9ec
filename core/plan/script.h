// A program given step by step for every rank: the `script` workload, and what the loop workloads
// become.
#ifndef LOCKSTEP_CORE_PLAN_SCRIPT_H_
#define LOCKSTEP_CORE_PLAN_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/ddp/training.h"

namespace lockstep {

struct ScriptStep {
  enum class Kind : std::uint8_t {
    kCollective,
    kSleep,  // the three pass time without the processor; they differ in the journal's phase
    kCompute,
    kLoad,
    kExit,    // leaves at once with exit_code, finalizing nothing
    kThrow,   // ends the program as an exception of the user's would
    kHang,    // sleeps for ever
    kFinish,  // the program is over
    kChurn,   // makes a communicator of the same ranks, calls the operation on it, destroys it
    kSplit,   // makes a communicator of the same ranks and destroys it unused
  };
  Kind kind = Kind::kFinish;
  Operation operation;           // kCollective, kChurn
  std::size_t communicator = 0;  // index in ScriptProgram::communicators
  std::int64_t ns = 0;           // kSleep, kCompute, kLoad
  int exit_code = 0;
  std::int64_t times = 1;
};

struct ScriptCommunicator {
  std::string name;
  std::vector<int> members;  // ascending; a root is an index in here
};

struct ScriptProgram {
  std::vector<ScriptCommunicator> communicators;  // the world first; made in this order
  std::vector<std::vector<ScriptStep>> steps;     // one list a rank
  std::int64_t rounds = 1;                        // every list so many times: the iterations
  AfterFinish after_finish = AfterFinish::kExit;
};

// "all_reduce world f32 1024 op=max", "barrier pair", "sleep 100ms", "repeat 10 STEP", "exit 3" …
// Errors (kInvalidInput) say what is wrong and what is right, without naming a place.
Result<ScriptStep> ParseStep(std::string_view text,
                             const std::vector<ScriptCommunicator>& communicators);

// Whether every member of the communicator calls the same operations on it in the same order and
// comes to the end of its list: then every result is known.
bool PromisesRightData(const ScriptProgram& program, std::size_t communicator);

// Collectives that a rank calls if nothing befalls it.
std::int64_t CollectivesOf(const ScriptProgram& program, int rank);

}  // namespace lockstep

#endif  // LOCKSTEP_CORE_PLAN_SCRIPT_H_
