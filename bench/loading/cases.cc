// Cases whose iteration is a batch of a sharded dataset.
#include <fmt/core.h>

#include "bench/plan/plan.h"

namespace lockstep::bench::plan {
namespace {

// Long enough for the steady state behind the prefetched batches to show.
constexpr std::uint32_t kVisitIterations = 8;

class SettingsWriter {
 public:
  template <typename T>
  void operator()(const char* name, const T& value) {
    settings.emplace_back(name, fmt::format("{}", value));
  }
  std::vector<std::pair<std::string, std::string>> settings;
};

std::string NameOf(const ShardedLoad& load) {
  std::string name = fmt::format("sharded_load/batch:{}", load.batch);
  if (!load.set_epoch) name += "/no_set_epoch";
  if (load.drop_last) name += "/drop_last";
  if (load.weighted) name += "/weighted";
  if (load.slow_down != 1) name += fmt::format("/slow_down:{}", load.slow_down);
  return name;
}

PlannedCase CaseOf(const ShardedLoad& load) {
  PlannedCase planned{NameOf(load), {{collective::Collective::kBarrier}}, false, "", -1, 0};
  planned.step = load;
  planned.parts = {{"load_ns", "ns", Over::kMax},
                   {"waited_ns", "ns", Over::kMean},
                   {"samples", "samples", Over::kMean}};
  SettingsWriter writer;
  DescribeShardedLoad(writer, load);
  planned.settings = std::move(writer.settings);
  planned.visit_iterations = kVisitIterations;
  return planned;
}

Status Check(const LoadAxes& axes, int world_size) {
  const ShardedLoad& load = axes.common;
  if (load.slow_rank < 0 || load.slow_rank >= world_size) {
    return InvalidInput(fmt::format("--slow-rank {}: no such rank; ranks are 0 to {}",
                                    load.slow_rank, world_size - 1));
  }
  for (const double slow_down : axes.slow_downs) {
    if (slow_down >= 1 && slow_down <= 1000) continue;
    return InvalidInput(fmt::format("--slow-down {}: give a factor from 1 to 1000", slow_down));
  }
  if (load.batch < 1 || load.samples < load.batch * world_size) {
    return InvalidInput(
        fmt::format("--batch {}: {} samples give no batch to each of {} ranks; give more --samples",
                    load.batch, load.samples, world_size));
  }
  return OkStatus();
}

}  // namespace

Result<Plan> ExpandLoadPlan(const BenchSpec& spec, int world_size) {
  LOCKSTEP_ASSIGN_OR_RETURN(Plan plan, PlanWithoutCases(spec, world_size));
  LOCKSTEP_RETURN_IF_ERROR(Check(spec.load, world_size));
  plan.paired = true;
  for (const double slow_down : spec.load.slow_downs) {
    for (const bool weighted : spec.load.weighted) {
      for (const bool drop_last : spec.load.drop_last) {
        for (const bool set_epoch : spec.load.set_epoch) {
          ShardedLoad load = spec.load.common;
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

}  // namespace lockstep::bench::plan
