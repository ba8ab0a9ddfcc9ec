// The kind of bench_links: messages between pairs of ranks, measured in rounds of disjoint pairs,
// and again where a pair looks slow. It relies on link_survey.h for who is slow, and for
// what is said of it.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "bench/harness/bench_main.h"
#include "bench/links/cases.h"
#include "bench/links/link_step.h"
#include "bench/links/link_survey.h"
#include "bench/measure/kind.h"
#include "core/base/units.h"

namespace lockstep::bench::links {
namespace {

// As typed.
struct RawOptions {
  std::string bytes = "1M", per = "rank", all_at_once;
};

LinkSurvey SurveyOf(const measure::Survey& survey) {
  return LinkSurvey(survey.plan, {survey.hosts, survey.plan.backend == "nccl"});
}

class Links final : public measure::Kind {
 public:
  std::string name() const override { return "bench_links"; }
  std::string description() const override {
    return "Latency and bandwidth of the links between all ranks; slow links and hosts are singled "
           "out.";
  }

  void AddOptions(ArgumentParser& parser) override {
    parser.Add("--bytes=BYTES", raw_.bytes, "Size of the messages that tell the bandwidth")
        .ShowDefault();
    parser
        .Add("--per=WORD", raw_.per,
             "Who takes part (rank: all ranks; host: one rank of each host)")
        .OneOf({"rank", "host"})
        .ShowDefault();
    parser.Flag("--one-at-a-time", axes_.one_at_a_time,
                "One pair after the other, instead of disjoint pairs at the same time");
    parser
        .Add("--all-at-once=WORD", raw_.all_at_once,
             "Also every rank with all others (0 or 1; default: 1 where the backend can)")
        .OneOf({"0", "1"});
    parser
        .Add("--slow-factor=FACTOR", axes_.slow_factor,
             "A link is slow only if it is slower than usual by this factor")
        .BetweenReals(1.1, 1e6)
        .ShowDefault();
  }

  Status ReadOptions(const ArgumentParser&, measure::ReportFormat format,
                     plan::BenchSpec&) override {
    if (format == measure::ReportFormat::kNcclTests) {
      return InvalidInput(
          "--format: nccl-tests has no columns for pairs of ranks; use text, jsonl, csv or gbench");
    }
    LOCKSTEP_ASSIGN_OR_RETURN(axes_.bytes, ParseBytes("--bytes", raw_.bytes));
    if (!raw_.all_at_once.empty()) axes_.all_at_once = raw_.all_at_once == "1";
    return OkStatus();
  }

  Result<plan::Plan> Expand(const plan::BenchSpec& spec, int ranks) const override {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return links::Expand(spec, axes_, ranks, all);
  }

  // --per=host
  bool depends_on_hosts() const override { return raw_.per == "host"; }
  Result<plan::Plan> ExpandOnHosts(const plan::BenchSpec& spec,
                                   const std::vector<std::string>& hosts) const override {
    if (!depends_on_hosts()) return Expand(spec, static_cast<int>(hosts.size()));
    std::map<std::string, int> first;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      first.emplace(hosts[rank], static_cast<int>(rank));
    }
    std::vector<int> nodes;
    for (const auto& [host, rank] : first) nodes.push_back(rank);
    std::sort(nodes.begin(), nodes.end());
    return links::Expand(spec, axes_, static_cast<int>(hosts.size()), nodes);
  }

  measure::StepFactory StepsOf(const measure::Bench& bench) const override {
    return [&bench](std::uint32_t i) { return MakeLinkStep(bench, i); };
  }

  std::vector<std::size_t> Retests(const measure::Survey& survey) const override {
    return SurveyOf(survey).Retests(survey.book, survey.repetition);
  }

  void Explain(const std::vector<results::store::RankHistory>& history,
               const std::vector<std::string>& hosts,
               measure::Interruption& interruption) const override {
    NameOpenLinks(history, interruption.lifetime, hosts, interruption.judgement);
  }

  void Judge(const measure::Survey& survey, results::store::Run& run) const override {
    SurveyOf(survey).AddTo(survey.book, survey.repetition, run);
  }

  std::string Describe(const results::store::Run& run) const override { return DescribeLinks(run); }

 private:
  RawOptions raw_;
  Axes axes_;
};

}  // namespace
}  // namespace lockstep::bench::links

int main(int argc, char** argv) {
  lockstep::bench::links::Links kind;
  return lockstep::bench::harness::BenchMain(kind, argc, argv);
}
