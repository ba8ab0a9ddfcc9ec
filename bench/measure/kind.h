// The port between the harness and a kind of benchmark: its options, its cases, its steps and what
// it makes of what was measured. Agents, rounds, outbox, hangs, store and reports know no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/effects.h"
#include "bench/measure/measurement.h"
#include "bench/measure/sample_book.h"
#include "bench/measure/step.h"
#include "bench/measure/visit_figure.h"
#include "bench/plan/plan.h"
#include "core/base/argument_parser.h"
#include "core/base/status.h"
#include "results/store/run.h"

namespace lockstep::bench::measure {

enum class ReportFormat { kTable, kNcclTests, kGoogleBenchmark, kJsonLines, kCsv };

// A repetition whose cases were measured.
struct Survey {
  const plan::Plan& plan;
  const std::vector<std::string>& hosts;  // one a rank; equal: the same host
  const SampleBook& book;
  int repetition = 0;
};

// Makes the steps of one rank, and keeps what they share.
using StepFactory = std::function<std::unique_ptr<Step>(std::uint32_t case_index)>;

// A program has one, which parses the command line in agents. Workers have only the plan.
class Kind {
 public:
  virtual ~Kind() = default;
  virtual std::string name() const = 0;         // "bench_allreduce"
  virtual std::string description() const = 0;  // first line of --help

  // Those of this kind, which --help lists before those of every kind.
  virtual void AddOptions(ArgumentParser& parser) = 0;
  // Whether its iterations move data through buffers: what can be compared, and registered.
  virtual bool takes_buffers() const { return true; }
  // Whether --cuda-graph is among them; else it is an option of every kind.
  virtual bool has_graph_option() const { return false; }
  // Whether a device notes what it begins and ends unless --device-marks says otherwise: where what
  // is timed is long enough not to show it.
  virtual bool marks_device() const { return false; }
  // When they are parsed, and `spec` holds those of every kind. Errors name the option, the word
  // and what is accepted.
  virtual Status ReadOptions(const ArgumentParser& parser, ReportFormat format,
                             plan::BenchSpec& spec) = 0;
  // Whose iterations need the host between their collectives: no graph can replay them. "": none.
  virtual std::string needs_host() const { return name(); }

  virtual Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const = 0;
  // Whether ExpandOnHosts plans otherwise when it is known which rank is on which host.
  virtual bool depends_on_hosts() const { return false; }
  virtual Result<plan::Plan> ExpandOnHosts(const plan::BenchSpec& spec,
                                           const std::vector<std::string>& hosts) const {
    return Expand(spec, static_cast<int>(hosts.size()));
  }

  // Of a rank; `bench` outlives the factory.
  virtual StepFactory StepsOf(const Bench& bench) const = 0;

  // Cases that rested, and that a second pass measures.
  virtual std::vector<std::size_t> Retests(const Survey&) const { return {}; }
  // Adds to the findings of an interruption what the histories of its lifetime tell of it.
  virtual void Explain(const std::vector<results::store::RankHistory>&,
                       const std::vector<std::string>& /*hosts*/, Interruption&) const {}
  // Adds to a run with records and judgement what they tell together, of its last repetition.
  virtual void Judge(const Survey& survey, results::store::Run& run) const {
    const bool by_mean = std::ranges::any_of(survey.plan.cases, CountsByMean);
    AddEffects(/*calibrates=*/!survey.plan.iterations, by_mean, run);
  }
  // The sentence of a run in which all is well; "": how many cases were measured.
  virtual std::string Describe(const results::store::Run&) const { return ""; }
};

}  // namespace lockstep::bench::measure
