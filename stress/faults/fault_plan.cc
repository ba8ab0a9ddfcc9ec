#include "stress/faults/fault_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/random.h"
#include "core/base/units.h"
#include "core/ddp/training.h"

namespace lockstep::stress::faults {
namespace {

struct KindInfo {
  FaultKind kind;
  std::string_view name;
  FaultSite site;
};
constexpr KindInfo kKinds[] = {
    {FaultKind::kExit, "exit", FaultSite::kProgram},
    {FaultKind::kThrow, "throw", FaultSite::kProgram},
    {FaultKind::kSegfault, "segfault", FaultSite::kProgram},
    {FaultKind::kAbort, "abort", FaultSite::kProgram},
    {FaultKind::kOutOfMemory, "out_of_memory", FaultSite::kProgram},
    {FaultKind::kDeviceMemoryFull, "device_memory_full", FaultSite::kProgram},
    {FaultKind::kHang, "hang", FaultSite::kProgram},
    {FaultKind::kSleep, "sleep", FaultSite::kProgram},
    {FaultKind::kNeverFinalize, "never_finalize", FaultSite::kProgram},
    {FaultKind::kHungAbort, "hung_abort", FaultSite::kProgram},
    {FaultKind::kWrongMembership, "wrong_membership", FaultSite::kProgram},
    {FaultKind::kSkipCollective, "skip_collective", FaultSite::kCall},
    {FaultKind::kExtraCollective, "extra_collective", FaultSite::kCall},
    {FaultKind::kWrongCount, "wrong_count", FaultSite::kCall},
    {FaultKind::kWrongType, "wrong_type", FaultSite::kCall},
    {FaultKind::kWrongRoot, "wrong_root", FaultSite::kCall},
    {FaultKind::kWrongOp, "wrong_op", FaultSite::kCall},
    {FaultKind::kWrongOrder, "wrong_order", FaultSite::kCall},
    {FaultKind::kCorruptInput, "corrupt_input", FaultSite::kCall},
    {FaultKind::kCorruptResult, "corrupt_result", FaultSite::kLibrary},
    {FaultKind::kSlowCollective, "slow_collective", FaultSite::kLibrary},
    {FaultKind::kFailedCollective, "failed_collective", FaultSite::kLibrary},
    {FaultKind::kDroppedCompletion, "dropped_completion", FaultSite::kLibrary},
    {FaultKind::kLeaveGroupOpen, "leave_group_open", FaultSite::kLibrary},
    {FaultKind::kKill, "kill", FaultSite::kOutside},
    {FaultKind::kStop, "stop", FaultSite::kOutside},
    {FaultKind::kTerminate, "terminate", FaultSite::kOutside},
    {FaultKind::kInterrupt, "interrupt", FaultSite::kOutside},
    {FaultKind::kCpuHog, "cpu_hog", FaultSite::kOutside},
    {FaultKind::kCpuThrottle, "cpu_throttle", FaultSite::kOutside},
    {FaultKind::kMemoryPressure, "memory_pressure", FaultSite::kOutside},
    {FaultKind::kShmFull, "shm_full", FaultSite::kOutside},
    {FaultKind::kFdExhaustion, "fd_exhaustion", FaultSite::kOutside},
    {FaultKind::kLowMemlock, "low_memlock", FaultSite::kOutside},
    {FaultKind::kClockJump, "clock_jump", FaultSite::kOutside},
    {FaultKind::kEnvironment, "environment", FaultSite::kStart},
    {FaultKind::kLinkDown, "link_down", FaultSite::kOutside},
    {FaultKind::kLinkDelay, "link_delay", FaultSite::kOutside},
    {FaultKind::kLinkLoss, "link_loss", FaultSite::kOutside},
    {FaultKind::kLinkRate, "link_rate", FaultSite::kOutside},
    {FaultKind::kLinkReset, "link_reset", FaultSite::kOutside},
    {FaultKind::kNetworkDown, "network_down", FaultSite::kOutside},
    {FaultKind::kNetworkDelay, "network_delay", FaultSite::kOutside},
    {FaultKind::kNetworkLoss, "network_loss", FaultSite::kOutside},
    {FaultKind::kNetworkRate, "network_rate", FaultSite::kOutside},
    {FaultKind::kNetworkReorder, "network_reorder", FaultSite::kOutside},
    {FaultKind::kNetworkReset, "network_reset", FaultSite::kOutside},
    {FaultKind::kNetworkBlock, "network_block", FaultSite::kOutside},
};

const KindInfo& InfoOf(FaultKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const KindInfo& info) { return info.kind == kind; });
}

struct MomentInfo {
  FaultMoment::Kind kind;
  std::string_view name;
  bool numbered;
};
constexpr MomentInfo kMoments[] = {
    {FaultMoment::Kind::kInit, "init", false},
    {FaultMoment::Kind::kIteration, "iteration", true},
    {FaultMoment::Kind::kCollective, "collective", true},
    {FaultMoment::Kind::kBackward, "backward", true},
    {FaultMoment::Kind::kEpoch, "epoch", true},
    {FaultMoment::Kind::kReplay, "replay", true},
    {FaultMoment::Kind::kBeforeJoinExit, "before:join_exit", false},
    {FaultMoment::Kind::kBeforeFinalize, "before:finalize", false},
    {FaultMoment::Kind::kRebuild, "rebuild", false},
    {FaultMoment::Kind::kConnect, "connect", false},
    {FaultMoment::Kind::kAbort, "abort", false},
};

// How much of a program there is to draw a moment from.
struct Extent {
  std::int64_t iterations = 0;
  std::int64_t collectives = 0;  // a lower bound
  bool trains = false;
  bool joins = false;
};

Extent ExtentOf(const scenario::Scenario& scenario, int rank) {
  if (const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload)) {
    return {.iterations = script->rounds, .collectives = scenario::CollectivesOf(*script, rank)};
  }
  if (const auto* race = std::get_if<scenario::StreamRaceProgram>(&scenario.workload)) {
    return {.iterations = race->rounds, .collectives = race->rounds};
  }
  if (const auto* replay = std::get_if<scenario::GraphReplayProgram>(&scenario.workload)) {
    // Called once and captured once.
    return {.iterations = replay->rounds, .collectives = 2 * std::ssize(replay->operations)};
  }
  if (const auto* loading = std::get_if<scenario::LoadingProgram>(&scenario.workload)) {
    const std::int64_t of_batches = scenario.ranks * loading->batch;
    const std::int64_t batches = loading->epochs * (loading->samples.At(rank) / of_batches);
    return {.iterations = batches, .collectives = batches};
  }
  const auto& training = std::get<ddp::TrainingProgram>(scenario.workload);
  const std::int64_t iterations =
      ddp::InputsOf(training, rank, scenario.ranks) * std::max<std::int64_t>(1, training.epochs);
  // The constructor has three at least, and every iteration one.
  return {.iterations = iterations,
          .collectives = 3 + iterations,
          .trains = true,
          .joins = training.join};
}

FaultMoment Draw(const Extent& extent, FaultSite site, Random& random) {
  using Kind = FaultMoment::Kind;
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(
        random.Below(static_cast<std::uint64_t>(std::max<std::int64_t>(1, end))));
  };
  const FaultMoment collective = {Kind::kCollective, 1 + below(extent.collectives)};
  if (site == FaultSite::kCall || site == FaultSite::kLibrary) return collective;
  std::vector<FaultMoment> moments = {{Kind::kInit},
                                      collective,
                                      {Kind::kIteration, below(extent.iterations)},
                                      {Kind::kBeforeFinalize}};
  if (extent.trains) moments.push_back({Kind::kBackward, below(extent.iterations)});
  if (extent.joins) moments.push_back({Kind::kBeforeJoinExit});
  return moments[static_cast<std::size_t>(below(static_cast<std::int64_t>(moments.size())))];
}

// The parser of scenarios has checked the form.
FaultMoment MomentOf(std::string_view at) {
  FaultMoment moment;
  if (at.starts_with("time:")) {
    moment.kind = FaultMoment::Kind::kTime;
    const Result<double> seconds = ParseSeconds("at", at.substr(5));
    LOCKSTEP_CHECK(seconds.ok(), "a time that was accepted before");
    moment.seconds = *seconds;
    return moment;
  }
  for (const MomentInfo& info : kMoments) {
    if (!info.numbered && at == info.name) moment.kind = info.kind;
    if (!info.numbered || !at.starts_with(info.name)) continue;
    moment.kind = info.kind;
    moment.number = std::atoll(std::string(at.substr(info.name.size() + 1)).c_str());
  }
  return moment;
}

}  // namespace

std::string_view NameOf(FaultKind kind) { return InfoOf(kind).name; }
FaultSite SiteOf(FaultKind kind) { return InfoOf(kind).site; }
bool IsOfNetwork(FaultKind kind) { return NameOf(kind).starts_with("network_"); }
bool IsOfLink(FaultKind kind) { return NameOf(kind).starts_with("link_") || IsOfNetwork(kind); }

std::string Describe(const FaultMoment& moment) {
  if (moment.kind == FaultMoment::Kind::kTime) return fmt::format("time:{}s", moment.seconds);
  for (const MomentInfo& info : kMoments) {
    if (info.kind != moment.kind) continue;
    return info.numbered ? fmt::format("{}:{}", info.name, moment.number) : std::string(info.name);
  }
  return "unknown";
}

std::string Describe(const PlannedFault& fault) {
  const auto to = fault.amounts.find("to");
  const std::string peer = to == fault.amounts.end() ? "" : fmt::format(" to rank {}", to->second);
  return fmt::format("{} of rank {}{} at {}", NameOf(fault.kind), fault.rank, peer,
                     Describe(fault.moment));
}

std::vector<PlannedFault> PlanFaults(const scenario::Scenario& scenario, std::uint64_t seed) {
  std::vector<PlannedFault> faults;
  for (const scenario::FaultSpec& spec : scenario.faults) {
    const auto known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                    [&](const KindInfo& info) { return info.name == spec.kind; });
    LOCKSTEP_CHECK(known != std::end(kKinds), "a kind that the parser of scenarios lets pass");
    for (const int rank : spec.ranks) {
      Random random(Mix64(seed) + faults.size());
      PlannedFault fault = {known->kind,           rank,         {},
                            spec.duration_seconds, spec.amounts, spec.variables};
      // A link fails where there is traffic to come.
      const FaultSite site = IsOfLink(fault.kind) ? FaultSite::kLibrary : known->site;
      fault.moment =
          spec.at == "random" ? Draw(ExtentOf(scenario, rank), site, random) : MomentOf(spec.at);
      faults.push_back(fault);
    }
  }
  return faults;
}

}  // namespace lockstep::stress::faults
