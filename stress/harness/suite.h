// Scenarios as a session runs them, from the selected cases to the report.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/coordinator/coordinator.h"
#include "results/store/run.h"
#include "session/session.h"
#include "stress/harness/options.h"
#include "stress/harness/report.h"

namespace lockstep::stress::harness {

class StressSuite final : public session::Suite {
 public:
  std::string name() const override { return "lockstep-stress"; }
  // With backend sim it runs here: all ranks are in this process.
  Result<session::Plan> Prepare(const session::Launch& launch) override;
  coordinator::CoordinatorOptions agents() const override;
  std::string output() const override { return options_.output; }
  results::store::Run NewRun() const override;
  Status CheckOutputs() const override;
  // What the system under test does is in the run; errors are of input or environment.
  Status Conduct(coordinator::Coordinator& coordinator, results::store::Run& run,
                 session::Output& output) override;
  void Conclude(coordinator::Coordinator& coordinator, results::store::Run& run) override;
  Status Report(const results::store::Run& run, const results::store::RunFile& file) override;
  ExitCode OnFailover(const coordinator::FailoverReport& failover) override;
  int Work(std::unique_ptr<worker::WorkerLink> link) override;

 private:
  Result<ExitCode> Simulate();

  session::Launch launch_;
  StressOptions options_;
  StressOutcome outcome_;
};

}  // namespace lockstep::stress::harness
