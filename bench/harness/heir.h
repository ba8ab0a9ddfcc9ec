// What a follower does when the coordinator is lost and it is the successor: the run's file and its
// verdict, from what the agents that live have kept.
#ifndef LOCKSTEP_BENCH_HARNESS_HEIR_H_
#define LOCKSTEP_BENCH_HARNESS_HEIR_H_

#include <string>

#include "bench/harness/bench_info.h"
#include "bench/harness/options.h"
#include "core/launch/context.h"
#include "core/launch/fleet.h"
#include "core/plan/plan.h"
#include "results/store/run.h"

namespace lockstep {

// For FleetOptions::succeed. Writes the run (marked incomplete, times of lost ranks absent, medians
// over those that are left) under its own name if the legacy is whole, else as
// "<output>-rank<r>-partial.h5", and says so.
class Heir {
 public:
  Heir(const BenchInfo& info, const BenchOptions& options, const LaunchContext& context, Plan plan,
       std::string command_line);
  ExitCode operator()(const Legacy& legacy) const;

 private:
  Run Conclude(const Legacy& legacy) const;

  std::string name_;
  BenchOptions options_;
  LaunchContext context_;
  Plan plan_;
  std::string command_line_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_HEIR_H_
