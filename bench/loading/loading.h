// Sharded loading on every rank, and what ranks that load slower cost the others.
#pragma once

#include <string>
#include <vector>

#include "bench/loading/cases.h"
#include "bench/measure/kind.h"

namespace lockstep::bench::loading {

// As typed.
struct RawOptions {
  std::string dataset, samples = "512", batch = "16", workers = "2", passes = "4", slow_rank = "0";
  std::vector<std::string> set_epoch, drop_last, weighted, slow_downs;
};

class Loading final : public measure::Kind {
 public:
  std::string name() const override { return "bench_sharding"; }
  std::string description() const override {
    return "Batches of a sharded dataset: samples a second, imbalance between ranks and its cost.";
  }
  bool takes_buffers() const override { return false; }  // samples are always compared
  void AddOptions(ArgumentParser& parser) override;
  Status ReadOptions(const ArgumentParser&, measure::ReportFormat, plan::BenchSpec&) override;
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return loading::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override;

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace lockstep::bench::loading
