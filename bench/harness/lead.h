// The coordinator of a benchmark, from the plan to the exit code.
#ifndef LOCKSTEP_BENCH_HARNESS_LEAD_H_
#define LOCKSTEP_BENCH_HARNESS_LEAD_H_

#include <string>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/harness/bench_info.h"
#include "bench/harness/conductor.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/link_survey.h"
#include "bench/harness/options.h"
#include "bench/plan/plan.h"
#include "core/base/status.h"
#include "core/control/context.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "results/store/run_file.h"

namespace lockstep::bench::harness {

class Leader {
 public:
  Leader(const BenchInfo& info, const BenchOptions& options, const BenchmarkSelection& selection,
         plan::Plan plan, const control::LaunchContext& context,
         const coordinator::CoordinatorOptions& coordinator_options,
         std::vector<std::string> arguments);

  // Meets the other agents, measures, stores and reports. Errors are of input or environment; what
  // the system under test did is in the file and in the exit code.
  Result<ExitCode> Run();

 private:
  std::string OutputPath();
  // Everything after the agents have met; the caller dismisses them.
  Result<ExitCode> Measure(coordinator::Coordinator& coordinator);
  // Links between hosts are planned when it is known which ranks are on which.
  Status PlanLinks(const coordinator::Coordinator& coordinator);
  LinkSetting LinkSettingOf(const coordinator::Coordinator& coordinator) const;
  Status CheckMemory(const coordinator::Coordinator& coordinator) const;
  void WarnOfBinding(const coordinator::Coordinator& coordinator) const;
  floors::HostFloors MeasureHostFloors(const coordinator::Coordinator& coordinator) const;
  void Describe(const coordinator::Coordinator& coordinator, const floors::HostFloors& before,
                const floors::HostFloors& after, const std::string& worker_facts);
  void Conclude(const SampleBook& book, const floors::HostFloors& floors, const LinkSurvey& links,
                Measurement measurement);
  // All samples, as they came, with nothing judged.
  void SaveSamples(const coordinator::Coordinator& coordinator, SampleBook book,
                   const floors::HostFloors& floors, const Measurement& so_far);
  Result<ExitCode> StoreAndReport();

  const BenchInfo& info_;
  const BenchOptions& options_;
  const BenchmarkSelection& selection_;
  plan::Plan plan_;
  const control::LaunchContext& context_;
  const coordinator::CoordinatorOptions& coordinator_options_;
  results::store::Run run_;
  bool on_host_ = true;  // the buffers are; as the workers say
  results::store::RunFile file_;
};

}  // namespace lockstep::bench::harness

#endif  // LOCKSTEP_BENCH_HARNESS_LEAD_H_
