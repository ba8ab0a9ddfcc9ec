// The kind of bench_links: messages between pairs of ranks, measured in rounds of disjoint pairs,
// and again where a pair looks slow. It relies on link_survey.h for who is slow, and on
// link_findings.h for what is said of it.
#include "bench/links/links.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>

#include "bench/links/link_findings.h"
#include "bench/links/link_step.h"
#include "bench/links/link_survey.h"
#include "core/base/units.h"

namespace lockstep::bench::links {
namespace {

LinkSurvey SurveyOf(const measure::Survey& survey) {
  return LinkSurvey(survey.plan, {survey.hosts, survey.plan.backend == "nccl"});
}

}  // namespace

std::string Links::description() const {
  return "Latency and bandwidth of the links between all ranks; slow links and hosts are singled "
         "out.";
}

void Links::AddOptions(ArgumentParser& parser) {
  parser.Add("--bytes=BYTES", raw_.bytes, "Size of the messages that tell the bandwidth")
      .ShowDefault();
  parser
      .Add("--per=WORD", raw_.per, "Who takes part (rank: all ranks; host: one rank of each host)")
      .ShowDefault();
  parser.Flag("--one-at-a-time", raw_.one_at_a_time,
              "One pair after the other, instead of disjoint pairs at the same time");
  parser.Add("--all-at-once=WORD", raw_.all_at_once,
             "Also every rank with all others (0 or 1; default: 1 where the backend can)");
  parser
      .Add("--slow-factor=FACTOR", raw_.slow_factor,
           "A link is slow only if it is slower than usual by this factor")
      .ShowDefault();
}

Status Links::ReadOptions(const ArgumentParser&, measure::ReportFormat format, plan::BenchSpec&) {
  if (format == measure::ReportFormat::kNcclTests) {
    return InvalidInput(
        "--format: nccl-tests has no columns for pairs of ranks; use text, jsonl, csv or gbench");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(axes_.bytes, ParseBytes("--bytes", raw_.bytes));
  if (raw_.per != "rank" && raw_.per != "host") {
    return InvalidInput(fmt::format("--per: '{}' is none of rank, host", raw_.per));
  }
  axes_.one_at_a_time = raw_.one_at_a_time;
  if (!raw_.all_at_once.empty() && raw_.all_at_once != "0" && raw_.all_at_once != "1") {
    return InvalidInput(fmt::format("--all-at-once: '{}' is none of 0, 1", raw_.all_at_once));
  }
  if (!raw_.all_at_once.empty()) axes_.all_at_once = raw_.all_at_once == "1";
  char* end = nullptr;
  axes_.slow_factor = std::strtod(raw_.slow_factor.c_str(), &end);
  if (raw_.slow_factor.empty() || *end != '\0' || !(axes_.slow_factor >= 1.1) ||
      !(axes_.slow_factor <= 1e6)) {
    return InvalidInput(
        fmt::format("--slow-factor: '{}' is not a number from 1.1 to 1e6", raw_.slow_factor));
  }
  return OkStatus();
}

Result<plan::Plan> Links::Expand(const plan::BenchSpec& spec, int ranks) const {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return links::Expand(spec, axes_, ranks, all);
}

Result<plan::Plan> Links::ExpandOnHosts(const plan::BenchSpec& spec,
                                        const std::vector<std::string>& hosts) const {
  std::map<std::string, int> first;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    first.emplace(hosts[rank], static_cast<int>(rank));
  }
  std::vector<int> nodes;
  for (const auto& [host, rank] : first) nodes.push_back(rank);
  std::sort(nodes.begin(), nodes.end());
  return links::Expand(spec, axes_, static_cast<int>(hosts.size()), nodes);
}

measure::StepFactory Links::StepsOf(const measure::Bench& bench) const {
  return [&bench](std::uint32_t i) { return std::make_unique<LinkStep>(bench, i); };
}

std::vector<std::size_t> Links::Retests(const measure::Survey& survey) const {
  return SurveyOf(survey).Retests(survey.book, survey.repetition);
}

void Links::Explain(const std::vector<results::store::RankHistory>& history,
                    const std::vector<std::string>& hosts,
                    measure::Interruption& interruption) const {
  NameOpenLinks(history, interruption.lifetime, hosts, interruption.judgement);
}

void Links::Judge(const measure::Survey& survey, results::store::Run& run) const {
  SurveyOf(survey).AddTo(survey.book, survey.repetition, run);
}

std::string Links::Describe(const results::store::Run& run) const { return DescribeLinks(run); }

}  // namespace lockstep::bench::links
