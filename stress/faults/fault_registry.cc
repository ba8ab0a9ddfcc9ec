// The table of faults, and the one grammar of their moments. Faults of the program stand with their
// bodies in program_faults.cc.
#include "stress/faults/fault_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iterator>

#include "core/base/check.h"
#include "core/base/units.h"

namespace lockstep::stress::faults {
namespace {

using Order = control::AgentFault::Kind;
using enum FaultKind;
using enum FaultSite;
using enum FaultScope;

constexpr double kMustBeSaid = FaultParameter::kMustBeSaid;
constexpr double kLeftOut = FaultParameter::kLeftOut;
constexpr double kMostBytes = 1e15;
constexpr double kMostSeconds = 1e9;
constexpr double kMostLinkSeconds = 60;
constexpr double kMostShare = 0.9;

constexpr FaultParameter kHogs[] = {
    {"processes", Unit::kNumber, 3, 1, 64, "write as in processes = 3, 1 to 64"}};
constexpr FaultParameter kThrottle[] = {
    {"share", Unit::kNumber, 0.1, 0.005, 0.99,
     "write the part of the time that the rank may run, as in share = 0.1 (0.005 to 0.99)"}};
constexpr FaultParameter kMemoryLeft[] = {{"bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes,
                                           "write what is left, as in bytes = \"16M\""}};
constexpr FaultParameter kShmLeft[] = {{"bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes,
                                        "write what is left, as in bytes = \"64K\""}};
constexpr FaultParameter kMemlock[] = {
    {"bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes, "write the limit, as in bytes = \"64K\""}};
constexpr FaultParameter kDescriptors[] = {
    {"descriptors", Unit::kNumber, 0, 0, 1e6, "write how many are left, as in descriptors = 2"}};
constexpr FaultParameter kJump[] = {{"by", Unit::kSeconds, kMustBeSaid, -kMostSeconds, kMostSeconds,
                                     "write as in by = \"1h\" or by = \"-90s\""}};
constexpr FaultParameter kDelay[] = {
    {"delay", Unit::kLinkTime, kMustBeSaid, 0, kMostLinkSeconds, "write as in delay = \"10ms\""},
    {"jitter", Unit::kLinkTime, kLeftOut, 0, kMostLinkSeconds}};
constexpr FaultParameter kLoss[] = {
    {"loss", Unit::kShare, kMustBeSaid, 0, kMostShare,
     "write the part of the segments that is lost, as in loss = 0.01"}};
constexpr FaultParameter kReorder[] = {
    {"share", Unit::kShare, kMustBeSaid, 0, kMostShare,
     "write the part of the packets that comes late, as in share = 0.25"},
    {"delay", Unit::kLinkTime, kMustBeSaid, 0, kMostLinkSeconds,
     "write how much later, as in delay = \"10ms\""}};
constexpr FaultParameter kRate[] = {{"rate", Unit::kRate, kMustBeSaid, 1024, kMostBytes,
                                     "write bytes per second as in rate = \"1MiB\""}};
constexpr FaultParameter kBlock[] = {{"port", Unit::kPort, kLeftOut, 1, 65535},
                                     {"answer", Unit::kAnswer, kLeftOut, 0, 1}};

constexpr FaultInfo kFaults[] = {
    {kSkipCollective, "skip_collective", kCall, "a call is left out"},
    {kExtraCollective, "extra_collective", kCall, "a call that nobody else makes comes before it"},
    {kWrongCount, "wrong_count", kCall, "a call has another number of elements"},
    {kWrongType, "wrong_type", kCall, "a call has another type of elements"},
    {kWrongRoot, "wrong_root", kCall, "a call has another root"},
    {kWrongOp, "wrong_op", kCall, "a call has another reduction"},
    {kWrongOrder, "wrong_order", kCall, "two calls change places"},
    {kCorruptInput, "corrupt_input", kCall, "an element of a call's input is changed"},
    {kCorruptResult, "corrupt_result", kLibrary, "an element of a result is changed"},
    {kLeaveGroupOpen, "leave_group_open", kLibrary, "nccl: ncclGroupStart, and never an end"},
    {kKill, "kill", kOutside, "SIGKILL", {}, kRank, SIGKILL},
    {kStop,
     "stop",
     kOutside,
     "SIGSTOP; continued after its duration, if it has one",
     {},
     kRank,
     SIGSTOP},
    {kTerminate, "terminate", kOutside, "SIGTERM", {}, kRank, SIGTERM},
    {kInterrupt, "interrupt", kOutside, "SIGINT", {}, kRank, SIGINT},
    {kCpuHog, "cpu_hog", kOutside,
     "it is bound to the processor it runs on, and processes that spin share that", kHogs, kRank, 0,
     Order::kCpuHog},
    {kCpuThrottle, "cpu_throttle", kOutside, "it may run in slices of the time only", kThrottle,
     kRank, 0, Order::kCpuThrottle},
    {kMemoryPressure, "memory_pressure", kOutside,
     "it may map so much more and no more (RLIMIT_AS)", kMemoryLeft, kRank, 0, Order::kMemoryLimit},
    {kShmFull, "shm_full", kOutside, "so much is left of a /dev/shm of its own", kShmLeft, kRank, 0,
     Order::kShmFull},
    {kFdExhaustion, "fd_exhaustion", kOutside,
     "it may open so many descriptors more (RLIMIT_NOFILE)", kDescriptors, kRank, 0,
     Order::kDescriptorLimit},
    {kLowMemlock, "low_memlock", kOutside, "it may lock so much memory (RLIMIT_MEMLOCK)", kMemlock,
     kRank, 0, Order::kLockedMemoryLimit},
    {kEnvironment,
     "environment",
     kStart,
     "its process has these variables; at = \"init\" only",
     {},
     kRank,
     0,
     Order::kSetup},
    {kLinkDown, "link_down", kOutside, "nothing passes, and neither end is told", {}, kLink},
    {kLinkDelay, "link_delay", kOutside, "every chunk leaves so much later", kDelay, kLink},
    {kLinkLoss, "link_loss", kOutside, "this part of the segments is lost and sent again", kLoss,
     kLink},
    {kLinkRate, "link_rate", kOutside, "so many bytes a second pass", kRate, kLink},
    {kLinkReset, "link_reset", kOutside, "the connections are reset, once", {}, kLink},
    {kNetworkDown, "network_down", kOutside, "no packet passes between two hosts", {}, kNetwork},
    {kNetworkDelay, "network_delay", kOutside, "every packet comes so much later", kDelay,
     kNetwork},
    {kNetworkLoss, "network_loss", kOutside, "this part of the packets is lost", kLoss, kNetwork},
    {kNetworkRate, "network_rate", kOutside, "so many bytes a second pass", kRate, kNetwork},
    {kNetworkReorder, "network_reorder", kOutside, "this part of the packets comes so much later",
     kReorder, kNetwork},
    {kNetworkReset,
     "network_reset",
     kOutside,
     "the connections between two hosts are reset, once",
     {},
     kNetwork},
    {kNetworkBlock, "network_block", kOutside, "a firewall forbids new connections", kBlock,
     kNetwork},
    {kClockJump, "clock_jump", kOutside, "its CLOCK_REALTIME jumps; no other clock does", kJump,
     kRank, 0, Order::kClockJump},
    {kSlowCollective, "slow_collective", kLibrary, "the library takes longer, by its duration"},
    {kFailedCollective, "failed_collective", kLibrary, "the library reports an error"},
    {kDroppedCompletion, "dropped_completion", kLibrary, "the library never says that it is done"},
};

// The named ones first. A row without a name gets the kind of its place.
std::vector<FaultInfo> MakeTable() {
  std::vector<FaultInfo> table(std::begin(kFaults), std::end(kFaults));
  table.insert(table.end(), ProgramFaults().begin(), ProgramFaults().end());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto place = static_cast<FaultKind>(i);
    if (table[i].kind == kUnnamed) table[i].kind = place;
    LOCKSTEP_CHECK(table[i].kind == place, "a row a fault, in the order of the enumerators");
  }
  return table;
}

const std::vector<FaultInfo>& Table() {
  static const std::vector<FaultInfo> table = MakeTable();
  return table;
}

// In the order in which a mistake lists them; `example`: of those with a number.
struct MomentInfo {
  FaultMoment::Kind kind;
  std::string_view name;
  std::string_view example = "";
};
constexpr MomentInfo kMoments[] = {
    {FaultMoment::Kind::kInit, "init"},
    {FaultMoment::Kind::kConnect, "connect"},
    {FaultMoment::Kind::kAbort, "abort"},
    {FaultMoment::Kind::kRebuild, "rebuild"},
    {FaultMoment::Kind::kTime, "time", "0.5s"},
    {FaultMoment::Kind::kIteration, "iteration", "3"},
    {FaultMoment::Kind::kCollective, "collective", "7"},
    {FaultMoment::Kind::kBackward, "backward", "2"},
    {FaultMoment::Kind::kEpoch, "epoch", "1"},
    {FaultMoment::Kind::kReplay, "replay", "4"},
    {FaultMoment::Kind::kBeforeJoinExit, "before:join_exit"},
    {FaultMoment::Kind::kBeforeFinalize, "before:finalize"},
};

bool IsCount(std::string_view text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view WhereOf(const FaultInfo& info) {
  if (info.scope != kRank) return info.scope == kLink ? "link" : "network";
  constexpr std::string_view kNames[] = {"program", "call", "library", "outside", "start"};
  return kNames[static_cast<std::size_t>(info.site)];
}

// "share (0.1)", "delay, jitter"
std::string KeysOf(const FaultInfo& info) {
  if (info.kind == kEnvironment) return "variables";
  std::string text;
  for (const FaultParameter& parameter : info.parameters) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", parameter.name);
    if (std::isfinite(parameter.usual)) text += fmt::format(" ({})", parameter.usual);
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::string Describe(const FaultMoment& moment) {
  if (moment.kind == FaultMoment::Kind::kTime) return fmt::format("time:{}s", moment.seconds);
  const auto* const info = std::ranges::find(kMoments, moment.kind, &MomentInfo::kind);
  return info->example.empty() ? std::string(info->name)
                               : fmt::format("{}:{}", info->name, moment.number);
}

std::optional<FaultMoment> ParseMoment(std::string_view at) {
  for (const MomentInfo& info : kMoments) {
    if (info.example.empty() && at == info.name) return FaultMoment{info.kind};
    if (info.example.empty() || !at.starts_with(info.name)) continue;
    std::string_view value = at.substr(info.name.size());
    if (!value.starts_with(':')) continue;
    value.remove_prefix(1);
    if (info.kind == FaultMoment::Kind::kTime) {
      // With a unit, so that nobody has to guess it.
      if (value.empty() || IsCount(value.substr(value.size() - 1))) return std::nullopt;
      const Result<double> seconds = ParseSeconds("", value);
      if (!seconds.ok()) return std::nullopt;
      return FaultMoment{info.kind, 0, *seconds};
    }
    if (!IsCount(value)) return std::nullopt;
    return FaultMoment{info.kind, std::atoll(std::string(value).c_str())};
  }
  return std::nullopt;
}

std::string ListMoments() {
  std::string text;
  for (const MomentInfo& info : kMoments) {
    if (&info == std::end(kMoments) - 1) {
      text += " or ";
    } else if (!text.empty()) {
      text += ", ";
    }
    text += info.name;
    if (!info.example.empty()) text += fmt::format(":{}", info.example);
    if (info.kind == FaultMoment::Kind::kRebuild) text += fmt::format(", {}", kRandomMoment);
  }
  return text;
}

std::span<const FaultInfo> AllFaults() { return Table(); }

const FaultInfo& InfoOf(FaultKind kind) { return Table()[static_cast<std::size_t>(kind)]; }

const FaultInfo* FindFault(std::string_view name) {
  const auto found = std::ranges::find(Table(), name, &FaultInfo::name);
  return found == Table().end() ? nullptr : &*found;
}

std::vector<std::string_view> NamesOfFaults() {
  std::vector<std::string_view> names;
  for (const FaultInfo& info : Table()) names.push_back(info.name);
  return names;
}

std::string ListFaults() {
  std::string text =
      fmt::format("{:<19} {:<8} {:<19} {}\n", "fault", "where", "keys", "what happens");
  for (const FaultInfo& info : Table()) {
    text +=
        fmt::format("{:<19} {:<8} {:<19} {}\n", info.name, WhereOf(info), KeysOf(info), info.help);
  }
  return text;
}

}  // namespace lockstep::stress::faults
