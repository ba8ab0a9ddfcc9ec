// Both passes as one matrix, the findings of all groups of links, and the sentence for a person. It
// measures nothing and decides nothing that link_groups.h does not.
#include "bench/links/link_survey.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "bench/measure/run_record.h"
#include "bench/plan/step_fields.h"
#include "core/base/units.h"
#include "core/stats/stats.h"
#include "core/verdict/outcome.h"

namespace lockstep::bench::links {
namespace {

double MedianOrUnknown(const std::vector<double>& values) {
  return values.empty() ? results::store::LinkPair::kUnknown : stats::Median(values);
}

// What is the same in all cases.
LinkExchange AnyOf(const plan::Plan& plan) {
  return plan.cases.empty() ? LinkExchange{} : plan::StepOf<LinkExchange>(plan.cases.front());
}

std::vector<double> AllAtOnce(const plan::Plan& plan, const measure::SampleBook& book,
                              int repetition) {
  std::vector<double> gbps;
  for (std::size_t i = 0; i < plan.cases.size(); ++i) {
    const auto links = plan::StepOf<LinkExchange>(plan.cases[i]);
    if (links.everyone.empty()) continue;
    gbps.assign(static_cast<std::size_t>(plan.world_size), results::store::LinkPair::kUnknown);
    const double sent =
        static_cast<double>(links.bytes) * static_cast<double>(links.everyone.size() - 1);
    for (const int rank : links.everyone) {
      gbps[static_cast<std::size_t>(rank)] =
          sent / MedianOrUnknown(
                     RoundsOf(book.Book(repetition, i), plan.cases[i], rank, 0, !plan.iterations));
    }
  }
  return gbps;
}

void AddLatency(const std::vector<double>& rounds, results::store::LinkPair& pair) {
  if (rounds.empty()) return;
  const stats::MedianInterval latency = stats::EstimateMedian(rounds);
  pair.latency_ns = latency.median;
  if (std::isfinite(latency.low)) pair.latency_low_ns = latency.low;
  if (std::isfinite(latency.high)) pair.latency_high_ns = latency.high;
}

// Every planned pair, with what both passes measured; nothing is judged yet.
std::map<stats::NodePair, results::store::LinkPair> PairsOf(const plan::Plan& plan,
                                                            const PairTable& first,
                                                            const PairTable& second) {
  const auto bytes = static_cast<double>(AnyOf(plan).bytes);
  std::map<stats::NodePair, results::store::LinkPair> pairs;
  for (const LinkExchange& links : ExchangesOf(plan)) {
    if (links.retest) continue;
    for (const stats::NodePair& ends : links.pairs) {
      results::store::LinkPair& pair = pairs[ends];
      pair.a = ends.first;
      pair.b = ends.second;
      pair.standing = "not_measured";
      if (const auto found = first.find(ends); found != first.end()) {
        pair.standing = "not_judged";
        pair.rounds = std::ssize(found->second.latency_ns);
        AddLatency(found->second.latency_ns, pair);
        pair.forward_gbps = bytes / MedianOrUnknown(found->second.forward_ns);
        pair.back_gbps = bytes / MedianOrUnknown(found->second.back_ns);
      }
      if (const auto found = second.find(ends); found != second.end()) {
        pair.retest_latency_ns = MedianOrUnknown(found->second.latency_ns);
        pair.retest_forward_gbps = bytes / MedianOrUnknown(found->second.forward_ns);
        pair.retest_back_gbps = bytes / MedianOrUnknown(found->second.back_ns);
      }
    }
  }
  return pairs;
}

void AddStandings(const LinkGroup& group, const LinkVerdicts& verdicts,
                  std::map<stats::NodePair, results::store::LinkPair>& pairs) {
  const std::set<int> bad(verdicts.blame.nodes.begin(), verdicts.blame.nodes.end());
  const auto contains = [](const std::vector<stats::NodePair>& all, const stats::NodePair& nodes) {
    return std::count(all.begin(), all.end(), nodes) > 0;
  };
  if (verdicts.first.standings.empty()) return;  // nothing to compare
  for (const auto& [nodes, members] : group.members) {
    const auto standing = verdicts.first.standings.find(nodes);
    const bool seen = standing != verdicts.first.standings.end() && standing->second.slow();
    const bool of_node = bad.contains(nodes.first) || bad.contains(nodes.second);
    std::string word = seen ? "unsteady" : "usual";
    if (contains(verdicts.undecided, nodes)) {
      word = "too_busy";
    } else if (contains(verdicts.blame.links, nodes)) {
      word = "slow_link";
    } else if (of_node && (seen || contains(verdicts.confirmed, nodes))) {
      word = group.of_hosts ? "slow_host" : "slow_rank";
    }
    for (const stats::NodePair& pair : members) pairs[pair].standing = word;
  }
}

}  // namespace

LinkSurvey::LinkSurvey(const plan::Plan& plan, LinkSetting setting)
    : plan_(plan), setting_(std::move(setting)), slow_factor_(AnyOf(plan).slow_factor) {}

std::vector<std::size_t> LinkSurvey::Retests(const measure::SampleBook& book,
                                             int repetition) const {
  const PairTable table = MeasuredPairs(plan_, book, repetition, /*retest=*/false, slow_factor_);
  std::set<stats::NodePair> wanted;
  for (const LinkGroup& group : LinkGroupsOf(table, setting_)) {
    const PairStatuses pass = JudgeOnce(group, table, slow_factor_);
    for (const stats::NodePair& nodes : RetestsOf(pass)) {
      wanted.insert(group.members.at(nodes).front());
    }
  }
  std::vector<std::size_t> cases;
  for (std::size_t i = 0; i < plan_.cases.size(); ++i) {
    const auto links = plan::StepOf<LinkExchange>(plan_.cases[i]);
    if (!links.retest) continue;
    if (wanted.contains(links.pairs.front())) cases.push_back(i);
  }
  return cases;
}

LinkSurvey::Repetition LinkSurvey::JudgeRepetition(const measure::SampleBook& book,
                                                   int repetition) const {
  const PairTable first = MeasuredPairs(plan_, book, repetition, /*retest=*/false, slow_factor_);
  const PairTable second = MeasuredPairs(plan_, book, repetition, /*retest=*/true, slow_factor_);
  std::map<stats::NodePair, results::store::LinkPair> pairs = PairsOf(plan_, first, second);
  Repetition judged;
  results::store::LinkMatrix& matrix = judged.matrix;
  matrix.bytes = AnyOf(plan_).bytes;
  matrix.slow_factor = slow_factor_;
  matrix.all_at_once_gbps = AllAtOnce(plan_, book, repetition);
  const auto bytes = static_cast<double>(matrix.bytes);
  for (const LinkGroup& group : LinkGroupsOf(first, setting_)) {
    const LinkVerdicts verdicts = JudgeTwice(group, first, second, slow_factor_);
    AddStandings(group, verdicts, pairs);
    judged.undecided = judged.undecided || !verdicts.undecided.empty();
    if (group.of_hosts || std::isnan(matrix.usual_latency_ns)) {
      matrix.usual_latency_ns = verdicts.first.usual_latency_ns;
      matrix.usual_gbps = bytes / verdicts.first.usual_sent_ns;
    }
    for (const int node : verdicts.blame.nodes) {
      judged.findings.push_back(SlowNode(group, verdicts, node, bytes));
    }
    for (const stats::NodePair& link : verdicts.blame.links) {
      judged.findings.push_back(SlowLink(group, verdicts, link, bytes));
    }
  }
  for (const auto& [ends, pair] : pairs) matrix.pairs.push_back(pair);
  return judged;
}

void LinkSurvey::AddTo(const measure::SampleBook& book, int last, results::store::Run& run) const {
  Repetition newest = JudgeRepetition(book, last);
  std::vector<verdict::Finding>& findings = newest.findings;
  for (int earlier = 0; earlier < last; ++earlier) {
    for (verdict::Finding& finding : JudgeRepetition(book, earlier).findings) {
      const auto same = [&](const verdict::Finding& known) {
        return known.cause == finding.cause && known.culprits == finding.culprits &&
               (known.proved || !finding.proved);
      };
      if (std::ranges::any_of(findings, same)) continue;
      finding.message += fmt::format("; in repetition {} of {}", earlier + 1, last + 1);
      findings.push_back(std::move(finding));
    }
  }
  const bool none = std::ranges::all_of(
      newest.matrix.pairs, [](const auto& pair) { return pair.standing == "not_measured"; });
  run.links = std::move(newest.matrix);
  verdict::Verdict& verdict = run.judgement.verdict;
  if (std::ranges::any_of(findings, &verdict::Finding::proved)) verdict = verdict::Verdict::kFail;
  const bool sure = !none && !newest.undecided && findings.empty();
  if (!sure && verdict == verdict::Verdict::kPass) verdict = verdict::Verdict::kUnknown;
  run.judgement.findings.insert(run.judgement.findings.end(), findings.begin(), findings.end());
}

std::string DescribeLinks(const results::store::Run& run) {
  const results::store::LinkMatrix& links = *run.links;
  std::vector<double> latencies, rates;
  std::size_t judged = 0, unsteady = 0, busy = 0;
  for (const results::store::LinkPair& pair : links.pairs) {
    if (std::isfinite(pair.latency_ns)) latencies.push_back(pair.latency_ns);
    for (const double gbps : {pair.forward_gbps, pair.back_gbps}) {
      if (std::isfinite(gbps)) rates.push_back(gbps);
    }
    busy += pair.standing == "too_busy";
    judged += pair.standing != "not_judged" && pair.standing != "not_measured";
    unsteady += pair.standing == "unsteady";
  }
  if (busy > 0) {
    return fmt::format(
        "the hosts are too busy to judge {} of {} links: ranks waited for processors; stop other "
        "jobs, start fewer ranks, or raise --time-budget",
        busy, links.pairs.size());
  }
  if (latencies.empty() || rates.empty()) return "no pair was measured";
  std::string text =
      fmt::format("{} of {} pairs, {}: half round trip {}, {} GB/s (medians)", latencies.size(),
                  links.pairs.size(), measure::ElementsText(run),
                  FormatDuration(stats::Median(latencies)), FormatFigure(stats::Median(rates)));
  if (judged == 0) return text + "; none is judged: that takes 3 hosts";
  text += fmt::format("; none of {} judged is slow", judged);
  if (unsteady > 0) text += fmt::format(" ({} only once)", unsteady);
  return text;
}

}  // namespace lockstep::bench::links
