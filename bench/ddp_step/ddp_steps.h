// A whole training iteration under DistributedDataParallel, for one or several settings of it.
#pragma once

#include <string>
#include <vector>

#include "bench/ddp_step/cases.h"
#include "bench/measure/kind.h"

namespace lockstep::bench::ddp_step {

// As typed.
struct RawOptions {
  std::vector<std::string> models, caps, buffers, hooks, find_unused, static_graph, accumulate;
  std::vector<std::string> cuda_graph;
  std::string first_bucket, compute_ms = "0", compute = "memory";
  bool first_iteration = false;
};

class DdpSteps final : public measure::Kind {
 public:
  std::string name() const override { return "bench_ddp_step"; }
  std::string description() const override;
  void AddOptions(ArgumentParser& parser) override;
  bool has_graph_option() const override { return true; }
  Status ReadOptions(const ArgumentParser& parser, measure::ReportFormat format,
                     plan::BenchSpec& spec) override;
  std::string needs_host() const override { return ""; }
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return ddp_step::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override;

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace lockstep::bench::ddp_step
