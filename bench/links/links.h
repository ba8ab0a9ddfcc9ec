// Latency and bandwidth between all pairs of ranks, and which link or host is slower than the rest.
#pragma once

#include <string>
#include <vector>

#include "bench/links/cases.h"
#include "bench/measure/kind.h"

namespace lockstep::bench::links {

// As typed.
struct RawOptions {
  std::string bytes = "1M", per = "rank", all_at_once, slow_factor = "1.5";
  bool one_at_a_time = false;
};

class Links final : public measure::Kind {
 public:
  std::string name() const override { return "bench_links"; }
  std::string description() const override;
  void AddOptions(ArgumentParser& parser) override;
  Status ReadOptions(const ArgumentParser& parser, measure::ReportFormat format,
                     plan::BenchSpec& spec) override;
  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override;
  // --per=host
  bool depends_on_hosts() const override { return raw_.per == "host"; }
  Result<plan::Plan> ExpandOnHosts(const plan::BenchSpec& spec,
                                   const std::vector<std::string>& hosts) const override;
  measure::StepFactory StepsOf(const measure::Bench& bench) const override;
  std::vector<std::size_t> Retests(const measure::Survey& survey) const override;
  void Explain(const std::vector<results::store::RankHistory>& history,
               const std::vector<std::string>& hosts,
               measure::Interruption& interruption) const override;
  void Judge(const measure::Survey& survey, results::store::Run& run) const override;
  std::string Describe(const results::store::Run& run) const override;

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace lockstep::bench::links
