// What a follower does when the coordinator is lost and it is the successor: the run's file and its
// verdict, from what the agents that live have kept.
#ifndef LOCKSTEP_BENCH_HARNESS_FAILOVER_H_
#define LOCKSTEP_BENCH_HARNESS_FAILOVER_H_

#include <string>

#include "bench/harness/options.h"
#include "bench/plan/plan.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"

namespace lockstep::bench::harness {

// For CoordinatorOptions::on_failover. Writes the run (marked incomplete, times of lost ranks
// absent, medians over those that are left) under its own name if the failover is whole, else as
// "<output>-rank<r>-partial.h5", and says so.
class Failover {
 public:
  Failover(std::string name, const BenchOptions& options, const control::LaunchContext& context,
           plan::Plan plan, std::string command_line);
  ExitCode operator()(const coordinator::FailoverReport& failover) const;

 private:
  results::store::Run Conclude(const coordinator::FailoverReport& failover) const;

  std::string name_;
  BenchOptions options_;
  control::LaunchContext context_;
  plan::Plan plan_;
  std::string command_line_;
};

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_FAILOVER_H_
