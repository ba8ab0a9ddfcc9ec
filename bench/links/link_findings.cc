// The sentences of slow links, slow hosts and messages that do not arrive. What is slow is decided
// before, in link_groups.h.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "bench/links/link_survey.h"
#include "core/base/units.h"
#include "core/journal/journal.h"

namespace lockstep::bench::links {
namespace {

// A link is not slower by an exact factor: two digits.
std::string Times(double ratio) { return FormatFigure(ratio, ratio / 3) + "x"; }

// Of what is slow: "half round trip 10.2 ms, 60.1 us is usual (170x); 0.01 GB/s a -> b, 0.9 is
// usual (90x)".
std::string Figures(const PairStatuses& pass, const stats::NodePair& pair, double bytes,
                    const std::string& from, const std::string& to) {
  const PairStatus& standing = pass.standings.at(pair);
  std::string text;
  if (standing.slow_latency) {
    text = fmt::format("half round trip {}{}, {} is usual ({})",
                       FormatDuration(standing.latency_ns), standing.at_most ? " or more" : "",
                       FormatDuration(pass.usual_latency_ns), Times(standing.latency_ratio));
  }
  const double usual_gbps = bytes / pass.usual_sent_ns;
  for (const bool forward : {true, false}) {
    if (!(forward ? standing.slow_forward : standing.slow_back)) continue;
    const double ratio = forward ? standing.forward_ratio : standing.back_ratio;
    text += fmt::format("{}{} GB/s{} {} -> {}, {} is usual ({})", text.empty() ? "" : "; ",
                        FormatFigure(usual_gbps / ratio), standing.at_most ? " or less" : "",
                        forward ? from : to, forward ? to : from, FormatFigure(usual_gbps),
                        Times(ratio));
  }
  return text;
}

// The first pass tells nothing of what was busy in it.
const char* HowMeasured(const LinkVerdicts& verdicts, const stats::NodePair& pair) {
  const auto& busy = verdicts.first.busy;
  const bool alone = std::count(busy.begin(), busy.end(), pair) > 0;
  return alone ? "twice, both times alone" : "twice, the second time alone";
}

void Prove(const LinkVerdicts& verdicts, verdict::Finding& finding) {
  finding.proved = verdicts.waits_known;
  if (finding.proved) return;
  finding.message += "; not proved: how long ranks waited for a processor is not known";
}

}  // namespace

verdict::Finding SlowLink(const LinkGroup& group, const LinkVerdicts& verdicts,
                          const stats::NodePair& pair, double bytes) {
  const auto& one = group.names[static_cast<std::size_t>(pair.first)];
  const auto& other = group.names[static_cast<std::size_t>(pair.second)];
  const PairStatus& standing = verdicts.second.standings.at(pair);
  const bool one_way = !standing.slow_latency && standing.slow_forward != standing.slow_back;
  const bool reversed = one_way && standing.slow_back;
  verdict::Finding finding{.cause = verdict::Cause::kSlowLink};
  for (const int node : {pair.first, pair.second}) {
    const auto& ranks = group.ranks[static_cast<std::size_t>(node)];
    finding.culprits.insert(finding.culprits.end(), ranks.begin(), ranks.end());
  }
  const std::string way = fmt::format("{} -> {}{}", reversed ? other : one, reversed ? one : other,
                                      one_way ? "" : " and back");
  const std::string figures = Figures(verdicts.second, pair, bytes, one, other);
  finding.message = fmt::format(
      "slow_link {}: {}; measured {}, and both ends are as fast as usual with other partners", way,
      figures, HowMeasured(verdicts, pair));
  Prove(verdicts, finding);
  finding.headline = verdict::Headline(fmt::format("link {} is slow", way)).Add(": " + figures);
  finding.remedy = fmt::format(
      "See cables, error counters (ethtool -S), speed and route of the interfaces between {} and "
      "{}",
      one, other);
  return finding;
}

verdict::Finding SlowNode(const LinkGroup& group, const LinkVerdicts& verdicts, int node,
                          double bytes) {
  const auto& name = group.names[static_cast<std::size_t>(node)];
  std::size_t partners = 0, slow = 0;
  const stats::NodePair* worst = nullptr;
  for (const stats::NodePair& pair : verdicts.second.tested) {
    if (pair.first != node && pair.second != node) continue;
    ++partners;
    const auto& confirmed = verdicts.confirmed;
    if (std::count(confirmed.begin(), confirmed.end(), pair) == 0) continue;
    ++slow;
    const auto ratio = [&](const stats::NodePair& p) {
      return verdicts.second.standings.at(p).latency_ratio;
    };
    if (worst == nullptr || ratio(pair) > ratio(*worst)) worst = &pair;
  }
  verdict::Finding finding{
      .cause = group.of_hosts ? verdict::Cause::kSlowHost : verdict::Cause::kSlowRank,
      .culprits = group.ranks[static_cast<std::size_t>(node)]};
  const auto& end = group.names[static_cast<std::size_t>(worst->first)];
  const auto& other_end = group.names[static_cast<std::size_t>(worst->second)];
  const std::string worst_link = fmt::format(
      "; {} - {}: {}", end, other_end, Figures(verdicts.second, *worst, bytes, end, other_end));
  finding.message =
      fmt::format("{} {}: slow with {} of {} partners, measured {}{}", finding.cause.name(), name,
                  slow, partners, HowMeasured(verdicts, *worst), worst_link);
  Prove(verdicts, finding);
  finding.headline =
      verdict::Headline(fmt::format("{} is slow with {} of {} partners", name, slow, partners))
          .Add(worst_link);
  finding.remedy = fmt::format(
      "Take {} out of the job; see its load, its interface, its cable to the switch, and the clock "
      "of its processors",
      name);
  return finding;
}

void NameOpenLinks(const std::vector<results::store::RankHistory>& history, int lifetime,
                   const std::vector<std::string>& hosts, verdict::Judgement& judgement) {
  std::set<stats::NodePair> open;
  for (const results::store::RankHistory& rank : history) {
    if (rank.lifetime != lifetime) continue;
    const std::optional<journal::JournalEvent> event =
        journal::OpenOperation({rank.events, rank.missed});
    const bool message = event && (event->collective == collective::Collective::kSend ||
                                   event->collective == collective::Collective::kRecv);
    if (message && event->root >= 0) open.insert(std::minmax(rank.rank, int{event->root}));
  }
  if (open.empty() || judgement.findings.empty()) return;
  std::string names;
  for (const auto& [a, b] : open) {
    names += fmt::format("{}link {} - {} ({} - {})", names.empty() ? "" : ", ", a, b,
                         hosts[static_cast<std::size_t>(a)], hosts[static_cast<std::size_t>(b)]);
  }
  verdict::Finding& finding = judgement.findings.front();
  if (finding.proved) {
    finding.message += fmt::format("; a message was under way on {}", names);
    return;
  }
  finding.message = fmt::format("a message on {} does not arrive; {}", names, finding.message);
  const auto [a, b] = *open.begin();
  finding.headline = verdict::Headline::Of(
      fmt::format("link {} - {} does not deliver; {}", a, b, finding.headline.text()));
  if (finding.culprits.empty() && open.size() == 1) {
    finding.culprits = {open.begin()->first, open.begin()->second};
  }
}

}  // namespace lockstep::bench::links
