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
#include "core/base/status.h"
#include "core/launch/context.h"
#include "core/launch/fleet.h"
#include "core/plan/plan.h"
#include "results/store/run.h"
#include "results/store/run_file.h"

namespace lockstep {

class Leader {
 public:
  Leader(const BenchInfo& info, const BenchOptions& options, const BenchmarkSelection& selection,
         Plan plan, const LaunchContext& context, const FleetOptions& fleet_options,
         std::vector<std::string> arguments);

  // Meets the other agents, measures, stores and reports. Errors are of input or environment; what
  // the system under test did is in the file and in the exit code.
  Result<ExitCode> Run();

 private:
  std::string OutputPath();
  // Everything after the agents have met; the caller dismisses them.
  Result<ExitCode> Measure(Fleet& fleet);
  // Links between hosts are planned when it is known which ranks are on which.
  Status PlanLinks(const Fleet& fleet);
  LinkSetting LinkSettingOf(const Fleet& fleet) const;
  Status CheckMemory(const Fleet& fleet) const;
  void WarnOfBinding(const Fleet& fleet) const;
  HostFloors MeasureHostFloors(const Fleet& fleet) const;
  void Describe(const Fleet& fleet, const HostFloors& before, const HostFloors& after,
                const std::string& worker_facts);
  void Conclude(const SampleBook& book, const HostFloors& floors, const LinkSurvey& links,
                Measurement measurement);
  // All samples, as they came, with nothing judged.
  void SaveSamples(const Fleet& fleet, SampleBook book, const HostFloors& floors,
                   const Measurement& so_far);
  Result<ExitCode> StoreAndReport();

  const BenchInfo& info_;
  const BenchOptions& options_;
  const BenchmarkSelection& selection_;
  Plan plan_;
  const LaunchContext& context_;
  const FleetOptions& fleet_options_;
  lockstep::Run run_;
  bool on_host_ = true;  // the buffers are; as the workers say
  RunFile file_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_LEAD_H_
