// A benchmark as a session runs it: what is measured, stored and reported.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/floors/floors.h"
#include "bench/floors/reference.h"
#include "bench/harness/google_benchmark.h"
#include "bench/harness/options.h"
#include "bench/harness/scheduler.h"
#include "bench/measure/kind.h"
#include "bench/plan/plan.h"
#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "session/session.h"

namespace lockstep::bench::harness {

class BenchSuite final : public session::Suite {
 public:
  explicit BenchSuite(measure::Kind& kind) : kind_(kind) {}

  std::string name() const override { return kind_.name(); }
  Result<session::Plan> Prepare(const session::Launch& launch) override;
  coordinator::CoordinatorOptions agents() const override;
  std::string output() const override { return options_.output; }
  results::store::Run NewRun() const override;
  // What the system under test does is in the run; errors are of input or environment.
  Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                 session::Output& output) override;
  void Conclude(coordinator::Coordinator& coordinator, results::store::Run& run) override;
  Status Report(const results::store::Run& run, const results::store::RunFile& file) override;
  ExitCode OnFailover(const coordinator::FailoverReport& failover) override;
  int Work(std::unique_ptr<worker::WorkerLink> link) override;

 private:
  floors::HostFloors MeasureFloors(const coordinator::Coordinator& coordinator);
  floors::Crossing LookAtMachine();  // the workers must be asleep
  // Plans anew what depends on which ranks are on which host.
  Status PlanOnHosts(results::store::Run& run);
  void Describe(const coordinator::Coordinator& coordinator, const floors::HostFloors& after,
                results::store::Run& run);
  void PrintTable(const results::store::Run& run, const results::store::RunFile& file) const;
  // All samples, as they came, with nothing judged.
  results::store::Run SoFar(const coordinator::Coordinator& coordinator, results::store::Run run,
                            const measure::Measurement& measurement) const;

  measure::Kind& kind_;
  session::Launch launch_;
  BenchOptions options_;
  BenchmarkSelection selection_;
  const comm::Backend* backend_ = nullptr;
  plan::Plan plan_;
  std::vector<std::string> hosts_;  // one a rank, once the agents have met
  std::int64_t began_ns_ = 0;
  std::optional<floors::Reference> reference_;
  floors::HostFloors floors_;                     // before anything is measured
  double least_trip_ns_ = floors::kUnknownFloor;  // of all looks at the machine
  double most_trip_ns_ = floors::kUnknownFloor;
  std::optional<measure::SampleBook> book_;
  measure::Measurement measurement_;
  bool on_host_ = true;  // the buffers are; as the workers say
};

}  // namespace lockstep::bench::harness
