// Cases whose iteration is a batch of a sharded dataset: one for each combination of the axes,
// all of them paired.
#include "bench/loading/cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "bench/plan/step_fields.h"

namespace lockstep::bench::loading {
namespace {

// Long enough for the steady state behind the prefetched batches to show. Workers that are the
// bottleneck finish their batches together: of as many iterations as there are workers one waits
// for all of them, and the others find theirs. Visits are made of whole such bursts.
constexpr std::int64_t kFewestIterations = 8;

std::int64_t InWholeBursts(std::int64_t iterations, const ShardedLoad& load) {
  const std::int64_t burst = std::max(load.workers, 1);
  return (iterations + burst - 1) / burst * burst;
}

std::string NameOf(const ShardedLoad& load) {
  std::string name = fmt::format("sharded_load/batch:{}", load.batch);
  if (!load.set_epoch) name += "/no_set_epoch";
  if (load.drop_last) name += "/drop_last";
  if (load.weighted) name += "/weighted";
  if (load.slow_down != 1) name += fmt::format("/slow_down:{}", load.slow_down);
  return name;
}

plan::PlannedCase CaseOf(const ShardedLoad& load) {
  plan::PlannedCase planned{NameOf(load), {{collective::Collective::kBarrier}}, false, "", -1, 0};
  planned.step = plan::PlanStep(load);
  planned.parts = {{"load_ns", "ns", plan::RankReduction::kMax},
                   {"waited_ns", "ns", plan::RankReduction::kMean},
                   {"samples", "samples", plan::RankReduction::kMean}};
  planned.settings = plan::SettingsOf(load);
  planned.host_access = true;
  planned.visit_iterations = static_cast<std::uint32_t>(InWholeBursts(kFewestIterations, load));
  return planned;
}

Status Check(const Axes& axes, int world_size) {
  const ShardedLoad& load = axes.common;
  if (load.slow_rank < 0 || load.slow_rank >= world_size) {
    return InvalidInput("--slow-rank {}: no such rank; ranks are 0 to {}", load.slow_rank,
                        world_size - 1);
  }
  for (const double slow_down : axes.slow_downs) {
    if (slow_down >= 1 && slow_down <= 1000) continue;
    return InvalidInput("--slow-down {}: give a factor from 1 to 1000", slow_down);
  }
  if (load.batch < 1 || load.samples < load.batch * world_size) {
    return InvalidInput(
        "--batch {}: {} samples give no batch to each of {} ranks; give more --samples", load.batch,
        load.samples, world_size);
  }
  return OkStatus();
}

}  // namespace

Result<plan::Plan> Expand(const plan::BenchSpec& spec, const Axes& axes, int world_size) {
  LOCKSTEP_ASSIGN_OR_RETURN(plan::Plan plan, plan::PlanWithoutCases(spec, world_size));
  LOCKSTEP_RETURN_IF_ERROR(Check(axes, world_size));
  plan.paired = true;
  // Of a burst that is cut, only the wait for all of it counts, or only what was there.
  if (plan.iterations) plan.iterations = InWholeBursts(*plan.iterations, axes.common);
  for (const double slow_down : axes.slow_downs) {
    for (const bool weighted : axes.weighted) {
      for (const bool drop_last : axes.drop_last) {
        for (const bool set_epoch : axes.set_epoch) {
          ShardedLoad load = axes.common;
          load.slow_down = slow_down;
          load.weighted = weighted;
          load.drop_last = drop_last;
          load.set_epoch = set_epoch;
          plan.cases.push_back(CaseOf(load));
        }
      }
    }
  }
  return plan;
}

}  // namespace lockstep::bench::loading
