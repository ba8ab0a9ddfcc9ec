// What befalls whom, and when: decided before a case starts, from the scenario and its seed.
#ifndef LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_
#define LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/plan/scenario.h"

namespace lockstep::stress::faults {

enum class FaultKind : std::uint8_t {
  // A point of the program.
  kExit,  // leaves at once, finalizing nothing
  kThrow,
  kSegfault,
  kAbort,
  kOutOfMemory,
  kDeviceMemoryFull,  // what is free on the device is taken, and kept
  kHang,              // for ever, or for its duration
  kSleep,
  kNeverFinalize,
  kHungAbort,        // from now on Abort() does not return
  kWrongMembership,  // it rebuilds as if nobody were lost
  // A collective that the program calls.
  kSkipCollective,
  kExtraCollective,
  kWrongCount,
  kWrongType,
  kWrongRoot,
  kWrongOp,
  kWrongOrder,
  kCorruptInput,
  // A collective as the library runs it.
  kCorruptResult,
  kSlowCollective,
  kFailedCollective,
  kDroppedCompletion,
  kLeaveGroupOpen,  // nccl: ncclGroupStart before it, and never an end
  // From outside the process.
  kKill,
  kStop,  // continued after its duration, if it has one
  kTerminate,
  kInterrupt,
  // ... by the rank's agent (core/agent/agent_faults.h).
  kCpuHog,
  kCpuThrottle,
  kMemoryPressure,
  kShmFull,
  kFdExhaustion,
  kLowMemlock,
  kClockJump,
  kEnvironment,  // from the start of the process
  // Of a link between ranks (stress/links); `rank` is the one end, amounts["to"] the other.
  kLinkDown,
  kLinkDelay,
  kLinkLoss,
  kLinkRate,
  kLinkReset,
  // Of the network between the hosts of two ranks, as above; it befalls packets.
  kNetworkDown,
  kNetworkDelay,
  kNetworkLoss,
  kNetworkRate,
  kNetworkReorder,
  kNetworkReset,
  kNetworkBlock,
};
std::string_view NameOf(FaultKind kind);

// kStart: in what the process is started with, so no point of the program is waited for.
enum class FaultSite : std::uint8_t { kProgram, kCall, kLibrary, kOutside, kStart };
FaultSite SiteOf(FaultKind kind);
bool IsOfLink(FaultKind kind);  // or of the network
bool IsOfNetwork(FaultKind kind);

struct FaultMoment {
  enum class Kind : std::uint8_t {
    kInit,        // before the ranks connect
    kTime,        // seconds after the ranks were told to begin
    kIteration,   // from 0
    kCollective,  // from 1: the n-th that this rank calls
    kBackward,    // of iteration `number`
    kEpoch,       // from 0
    kReplay,      // from 0: this replay of a graph is launched, and nobody has waited for it
    kBeforeJoinExit,
    kBeforeFinalize,
    kRebuild,  // before the ranks connect anew
    kConnect,  // nccl: the library has begun to connect, and is not done
    kAbort,    // it was told to abort, and has not called Abort() yet
  };
  Kind kind = Kind::kInit;
  std::int64_t number = 0;
  double seconds = 0;
};
// "iteration:3"
std::string Describe(const FaultMoment& moment);

struct PlannedFault {
  FaultKind kind = FaultKind::kKill;
  int rank = 0;
  FaultMoment moment;
  std::optional<double> duration_seconds;
  std::map<std::string, double> amounts = {};  // as in FaultSpec
  std::vector<std::string> variables = {};     // as in FaultSpec
};
// "kill of rank 1 at iteration:3"
std::string Describe(const PlannedFault& fault);

// One entry a fault and rank, in the file's order. Moments that are `random` are drawn from `seed`.
std::vector<PlannedFault> PlanFaults(const plan::Scenario& scenario, std::uint64_t seed);

}  // namespace lockstep::stress::faults

#endif  // LOCKSTEP_STRESS_FAULTS_FAULT_PLAN_H_
