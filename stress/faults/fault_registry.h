// Every kind of fault once: what a scenario may say of it, where and when it acts, what it does.
// The parser of scenarios, `stress --list-faults`, the page of faults and the injection by signals
// and agents read this. One more fault of the program is a row with its body, program_faults.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/control/facts.h"

namespace lockstep::stress::faults {

class RankBody;
struct PlannedFault;

// The first rows of the table, in its order: the faults that code elsewhere names. A fault that is
// all in its row needs no name; its kind is its place in the table.
enum class FaultKind : std::uint8_t {
  kSkipCollective,
  kExtraCollective,
  kWrongCount,
  kWrongType,
  kWrongRoot,
  kWrongOp,
  kWrongOrder,
  kCorruptInput,
  kCorruptResult,
  kLeaveGroupOpen,
  kKill,
  kStop,
  kTerminate,
  kInterrupt,
  kCpuHog,
  kCpuThrottle,
  kMemoryPressure,
  kShmFull,
  kFdExhaustion,
  kLowMemlock,
  kEnvironment,
  kLinkDown,
  kLinkDelay,
  kLinkLoss,
  kLinkRate,
  kLinkReset,
  kNetworkDown,
  kNetworkDelay,
  kNetworkLoss,
  kNetworkRate,
  kNetworkReorder,
  kNetworkReset,
  kNetworkBlock,
  kClockJump,
  kSlowCollective,
  kFailedCollective,
  kDroppedCompletion,
  kExit,
  kHang,
  kNeverFinalize,
  kUnnamed,  // in a row that its place names
};

// Where it acts.
enum class FaultSite : std::uint8_t {
  kProgram,  // a point of the program
  kCall,     // a collective that the program calls
  kLibrary,  // a collective as the library runs it
  kOutside,  // the process, or what it has, from outside
  kStart,    // in what the process is started with, so no point of the program is waited for
};

// What it befalls: a rank, a link between two ranks, the network between the hosts of two ranks.
enum class FaultScope : std::uint8_t { kRank, kLink, kNetwork };

struct FaultMoment {
  enum class Kind : std::uint8_t {
    kInit,        // before the ranks connect
    kConnect,     // nccl: the library has begun to connect, and is not done
    kAbort,       // it was told to abort, and has not called Abort() yet
    kRebuild,     // before the ranks connect anew
    kTime,        // seconds after the ranks were told to begin
    kIteration,   // from 0
    kCollective,  // from 1: the n-th that this rank calls
    kBackward,    // of iteration `number`
    kEpoch,       // from 0
    kReplay,      // from 0: this replay of a graph is launched, and nobody has waited for it
    kBeforeJoinExit,
    kBeforeFinalize,
  };
  Kind kind = Kind::kInit;
  std::int64_t number = 0;
  double seconds = 0;
};
// "iteration:3"
std::string Describe(const FaultMoment& moment);
// And back; none: it is no moment.
std::optional<FaultMoment> ParseMoment(std::string_view at);
// A moment that is drawn from the seed.
inline constexpr std::string_view kRandomMoment = "random";
// "init, connect, … or before:finalize": what may be written.
std::string ListMoments();

// A number, a size ("16M") or a time ("1h", "-90s"), as it is or as text; of links: a time from 0,
// a part of all, a size a second, a port, whether an answer is given.
enum class Unit : std::uint8_t {
  kNumber,
  kBytes,
  kSeconds,
  kLinkTime,
  kShare,
  kRate,
  kPort,
  kAnswer,
};

struct FaultParameter {
  static constexpr double kMustBeSaid = std::numeric_limits<double>::quiet_NaN();
  static constexpr double kLeftOut = std::numeric_limits<double>::infinity();
  std::string_view name;
  Unit unit = Unit::kNumber;
  double usual = kMustBeSaid;  // kLeftOut: it may be missing, and then there is none
  double least = 0;
  double most = 0;
  std::string_view remedy = "";  // "write …"
};

// What a fault of the program does to the rank that runs it. Returns only where the rank goes on:
// an error is what the program raises.
using Injection = Status (*)(RankBody& body, const PlannedFault& fault);

struct FaultInfo {
  FaultKind kind = FaultKind::kUnnamed;
  std::string_view name;
  FaultSite site = FaultSite::kProgram;
  std::string_view help;  // what happens, one line
  std::span<const FaultParameter> parameters = {};
  FaultScope scope = FaultScope::kRank;
  int signal = 0;                                                 // that injects it; 0: none
  std::optional<control::AgentFault::Kind> order = std::nullopt;  // by the rank's agent
  Injection inject = nullptr;  // of the program, but never_finalize

  // It has no duration, and befalls both directions of a link.
  bool at_once() const { return kind == FaultKind::kLinkReset || kind == FaultKind::kNetworkReset; }
  // Every moment may be written of most; what a process starts with, it has from the start.
  bool Allows(const std::string_view at) const { return site != FaultSite::kStart || at == "init"; }
};

std::span<const FaultInfo> AllFaults();
const FaultInfo& InfoOf(FaultKind kind);
const FaultInfo* FindFault(std::string_view name);  // nullptr: there is none
std::vector<std::string_view> NamesOfFaults();
// A row a fault: name, where, keys with their usual values, what happens.
std::string ListFaults();

inline std::string_view NameOf(FaultKind kind) { return InfoOf(kind).name; }
inline FaultSite SiteOf(FaultKind kind) { return InfoOf(kind).site; }
inline bool IsOfNetwork(FaultKind kind) { return InfoOf(kind).scope == FaultScope::kNetwork; }
inline bool IsOfLink(FaultKind kind) { return InfoOf(kind).scope != FaultScope::kRank; }
// An agent injects it: more than a signal, and no link.
inline bool IsByAgent(FaultKind kind) { return InfoOf(kind).order.has_value(); }

// The rows of the faults of the program, each with its body (program_faults.cc): those with an
// enumerator first, in its order.
std::span<const FaultInfo> ProgramFaults();

}  // namespace lockstep::stress::faults
