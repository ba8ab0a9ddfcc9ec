// The coordinator of a benchmark, from the plan to the exit code.
#ifndef LOCKSTEP_BENCH_HARNESS_LEAD_H_
#define LOCKSTEP_BENCH_HARNESS_LEAD_H_

#include <string>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/options.h"
#include "bench/harness/scheduler.h"
#include "bench/measure/kind.h"
#include "bench/plan/plan.h"
#include "core/base/status.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "results/store/run_file.h"

namespace lockstep::bench::harness {

class Leader {
 public:
  Leader(const measure::Kind& kind, const BenchOptions& options,
         const BenchmarkSelection& selection, plan::Plan plan,
         const control::LaunchContext& context,
         const coordinator::CoordinatorOptions& coordinator_options,
         std::vector<std::string> arguments);

  // Meets the other agents, measures, stores and reports. Errors are of input or environment; what
  // the system under test did is in the file and in the exit code.
  Result<ExitCode> Run();

 private:
  std::string OutputPath();
  // Everything after the agents have met; the caller dismisses them.
  Result<ExitCode> Measure(coordinator::Coordinator& coordinator);
  // Plans anew what depends on which ranks are on which host.
  Status PlanOnHosts();
  Status CheckMemory(const coordinator::Coordinator& coordinator) const;
  void WarnOfBinding(const coordinator::Coordinator& coordinator) const;
  floors::HostFloors MeasureHostFloors(const coordinator::Coordinator& coordinator) const;
  void Describe(const coordinator::Coordinator& coordinator, const floors::HostFloors& before,
                const floors::HostFloors& after, const std::string& worker_facts);
  void Conclude(const measure::SampleBook& book, const floors::HostFloors& floors,
                measure::Measurement measurement);
  // All samples, as they came, with nothing judged.
  void SaveSamples(const coordinator::Coordinator& coordinator, measure::SampleBook book,
                   const floors::HostFloors& floors, const measure::Measurement& so_far);
  Result<ExitCode> StoreAndReport();

  const measure::Kind& kind_;
  const BenchOptions& options_;
  const BenchmarkSelection& selection_;
  plan::Plan plan_;
  const control::LaunchContext& context_;
  const coordinator::CoordinatorOptions& coordinator_options_;
  std::vector<std::string> hosts_;  // one a rank, once the agents have met
  results::store::Run run_;
  bool on_host_ = true;  // the buffers are; as the workers say
  results::store::RunFile file_;
};

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LEAD_H_
