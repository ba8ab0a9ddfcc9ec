// One collective over message sizes, and over what models make of it: gradient buckets, or
// broadcasts of their state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/collectives/cases.h"
#include "bench/measure/kind.h"
#include "bench/measure/sweep_options.h"
#include "core/collective/collective.h"

namespace lockstep::bench::collectives {

// What a program of this kind measures.
struct Program {
  std::string name;
  std::string description;
  collective::Collective collective = collective::Collective::kAllReduce;
  bool in_place_by_default = false;  // as the collective is used in training
  bool takes_models = false;         // --model: gradient buckets, or broadcasts of a model's state

  bool has_data() const { return collective != collective::Collective::kBarrier; }
  bool has_root() const { return collective::InfoOf(collective).rooted; }
  bool reduces() const { return collective::InfoOf(collective).reduces; }
  // Of calls whose send and receive buffers differ in length only out of place is measured.
  bool has_in_place() const {
    return collective != collective::Collective::kAllGather &&
           collective != collective::Collective::kReduceScatter;
  }
};

// DDP's options as typed, of which buckets are made.
struct RawModelOptions {
  std::vector<std::string> models;
  std::vector<std::string> caps;  // MiB; empty: DDP's default
  std::string first;              // MiB; "": DDP's default
  bool find_unused = false;
  bool initial = false;
};

struct RawOptions {
  measure::SweepOptions sweep;
  std::string placement, blocking;
  std::vector<std::string> operations = {"sum"};
  RawModelOptions model;
};

class Collectives final : public measure::Kind {
 public:
  explicit Collectives(Program program) : program_(std::move(program)) {}

  std::string name() const override { return program_.name; }
  std::string description() const override { return program_.description; }
  void AddOptions(ArgumentParser& parser) override;
  Status ReadOptions(const ArgumentParser& parser, measure::ReportFormat format,
                     plan::BenchSpec& spec) override;
  bool takes_buffers() const override { return program_.has_data(); }
  std::string needs_host() const override;
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    return collectives::Expand(spec, axes_, ranks);
  }
  measure::StepFactory StepsOf(const measure::Bench& bench) const override;

 private:
  Program program_;
  RawOptions raw_;
  Axes axes_;
};

}  // namespace lockstep::bench::collectives
