// A program given step by step for every rank: the `script` workload, and what the loop workloads
// become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/collective/collective.h"
#include "core/ddp/training.h"

namespace lockstep::stress::scenario {

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
    kWait,    // the program waits for a stream
    // What waits for all of a GPU although it does not look so; on a host they wait for nothing.
    kAllocate,  // takes `bytes` of device memory and gives them back
    kKernel,    // the first kernel of a kind that the program has not used: its code is loaded
  };
  Kind kind = Kind::kFinish;
  collective::Operation operation = {};  // kCollective, kChurn
  std::size_t communicator = 0;          // index in ScriptProgram::communicators
  std::int64_t ns = 0;                   // kSleep, kCompute, kLoad
  int exit_code = 0;
  std::int64_t bytes = 0;  // kAllocate
  std::int64_t times = 1;
  // Where it runs: on the program itself when empty, else on a queue beside it, in order; the
  // program goes on at once. Of kCollective, kSleep, kCompute and kLoad.
  std::string stream = {};
  // It begins when all that was put on this stream so far is done. Empty: at once.
  std::string wait = {};
};

struct ScriptCommunicator {
  std::string name;
  std::vector<int> members;  // ascending; a root is an index in here
};

struct ScriptProgram {
  std::vector<ScriptCommunicator> communicators;  // the world first
  std::vector<std::vector<ScriptStep>> steps;     // one list a rank
  // Of each rank: the communicators that it takes part in making, in this order (members and others
  // alike, as with PyTorch's new_group). The n-th that a rank makes is the n-th of all ranks.
  std::vector<std::vector<std::size_t>> creation;
  // What a call on a communicator does that the rank is no member of: PyTorch warns and returns.
  // Without it such a program is refused.
  bool outsiders_return = false;
  std::int64_t rounds = 1;  // every list so many times: the iterations
  ddp::AfterFinish after_finish = ddp::AfterFinish::kExit;
  // Of each communicator, when the program has been read: see PromisesRightData. Every rank asks,
  // and it takes a look at all of them.
  std::vector<bool> promised = {};
};

// "all_reduce world f32 1024 op=max", "barrier pair", "sleep 100ms", "repeat 10 STEP", "exit 3" …
// A collective and a time may have stream=NAME and wait=NAME.
// Errors (kInvalidInput) say what is wrong and what is right, without naming a place.
Result<ScriptStep> ParseStep(std::string_view text,
                             const std::vector<ScriptCommunicator>& communicators);

// Whether every member of the communicator calls the same collectives on it in the same order and
// comes to the end of its list: then the result of every collective is known.
bool PromisesRightData(const ScriptProgram& program, std::size_t communicator);

// The same of the messages between two ranks of the communicator: every send to `to` has its
// receive from `from`, with the type and the count, in order.
bool PromisesRightMessages(const ScriptProgram& program, std::size_t communicator, int from,
                           int to);

// Whether any rank has streams beside the program.
bool UsesStreams(const ScriptProgram& program);

// The communicators as they came to be, beside the world: the n-th has the ranks whose n-th made
// one names them. They differ from the program's where ranks make them in different order; the name
// tells.
std::vector<ScriptCommunicator> MadeCommunicators(const ScriptProgram& program);

// Whether a step ends the rank's program in its first round.
bool HasOneRound(const ScriptProgram& program, int rank);
// Collectives that a rank calls if nothing befalls it.
std::int64_t CollectivesOf(const ScriptProgram& program, int rank);

}  // namespace lockstep::stress::scenario
