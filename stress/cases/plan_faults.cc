// Turns the faults of a scenario into one entry a rank. A random moment is drawn from how much of
// the program there is.
#include "stress/cases/plan_faults.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/random.h"
#include "core/ddp/training.h"

namespace lockstep::stress::cases {
namespace {

// How much of a program there is to draw a moment from.
struct Extent {
  std::int64_t iterations = 0;
  std::int64_t collectives = 0;  // a lower bound
  bool trains = false;
  bool joins = false;
};

Extent ExtentOf(const scenario::Scenario& scenario, int rank) {
  if (const auto* script = std::get_if<scenario::ScriptProgram>(&scenario.workload)) {
    return {.iterations = scenario::HasOneRound(*script, rank) ? 1 : script->rounds,
            .collectives = scenario::CollectivesOf(*script, rank)};
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

faults::FaultMoment Draw(const Extent& extent, faults::FaultSite site, Random& random) {
  using Kind = faults::FaultMoment::Kind;
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(
        random.Below(static_cast<std::uint64_t>(std::max<std::int64_t>(1, end))));
  };
  const faults::FaultMoment collective = {Kind::kCollective, 1 + below(extent.collectives)};
  if (site == faults::FaultSite::kCall || site == faults::FaultSite::kLibrary) return collective;
  std::vector<faults::FaultMoment> moments = {{Kind::kInit},
                                              collective,
                                              {Kind::kIteration, below(extent.iterations)},
                                              {Kind::kBeforeFinalize}};
  if (extent.trains) moments.push_back({Kind::kBackward, below(extent.iterations)});
  if (extent.joins) moments.push_back({Kind::kBeforeJoinExit});
  return moments[static_cast<std::size_t>(below(static_cast<std::int64_t>(moments.size())))];
}

}  // namespace

std::vector<faults::PlannedFault> PlanFaults(const scenario::Scenario& scenario,
                                             std::uint64_t seed) {
  std::vector<faults::PlannedFault> planned;
  for (const scenario::FaultSpec& spec : scenario.faults) {
    const faults::FaultInfo* const info = faults::FindFault(spec.kind);
    LOCKSTEP_CHECK(info != nullptr, "a kind that the parser of scenarios lets pass");
    for (const int rank : spec.ranks) {
      Random random(Mix64(seed) + planned.size());
      faults::PlannedFault fault = {info->kind,   rank,          {}, spec.duration_seconds,
                                    spec.amounts, spec.variables};
      // A link fails where there is traffic to come.
      const faults::FaultSite site =
          faults::IsOfLink(fault.kind) ? faults::FaultSite::kLibrary : info->site;
      fault.moment = spec.at == faults::kRandomMoment ? Draw(ExtentOf(scenario, rank), site, random)
                                                      : faults::ParseMoment(spec.at).value();
      planned.push_back(fault);
    }
  }
  return planned;
}

}  // namespace lockstep::stress::cases
