// Which links are slow. It is proved only when four things agree. Bytes were on the way for long,
// whenever the looks came, and as a habit. The sender's kernel or a relay says the same, and no
// process at either end waited for a processor. The first two alone are a suspicion, and so is a
// count of segments that were sent again.
#include "core/verdict/links/slow_link.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/units.h"
#include "core/stats/stats.h"
#include "core/verdict/links/transit.h"

namespace lockstep::verdict::links {
namespace {

// A habit is what three of four parts of the time show; a part is some portions of bytes.
constexpr std::size_t kWindows = 8;
// A time slice of a busy machine.
constexpr double kLeastSlowSeconds = 0.008;
constexpr double kTimesUsual = 4;
constexpr double kTimesSpread = 3;
// A way there and back is at least as long as the way there; an average of it lags behind.
constexpr double kLeastShareOfTransit = 0.5;
constexpr double kMostEchoShare = 0.25;
// What is lost is sent again within milliseconds where much else is on the way: then the loss is
// seen, and no delay. A segment holds so many bytes at most (RFC 1191: of 1500 without headers).
constexpr std::uint32_t kRetransmitsOfLoss = 5;
constexpr double kLossyShare = 0.03;
constexpr double kSegmentBytes = 1448;
// A receiver that keeps its window closed for most of the time loses what it has no room for.
constexpr double kMostLimitedShare = 0.5;

// The lower of two in the middle: half of the links may be slow, and the others are usual then.
double LowerMedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

double QuartileOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 4];
}

// The lower quartile of the means of kWindows parts of `values`, of which there are as many or
// more.
double HabitOf(const std::vector<double>& values) {
  std::vector<double> means;
  for (std::size_t i = 0; i < kWindows; ++i) {
    const std::size_t begin = i * values.size() / kWindows;
    const std::size_t end = (i + 1) * values.size() / kWindows;
    double sum = 0;
    for (std::size_t k = begin; k < end; ++k) sum += values[k];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return QuartileOf(means);
}

// What is known of the time on one link.
struct Watched {
  LinkTraffic link = {};
  std::size_t portions = 0;
  double least_s = 0;        // bytes are on the way for so long, as a habit
  double most_s = 0;         // ... and for no longer
  double unexplained_s = 0;  // ... and no wait for a processor explains so much of it
  std::vector<double> unexplained_times = {};  // likewise, of each portion
  bool waits_known = true;  // of all bytes; those of which they are not are explained
  double told_s = 0;        // relayed: for so long they were to be held back
  double longest_s = 0;     // the latest bytes were on the way for so long, or longer
  double round_trip_s = 0;  // as the sender's kernel has it; 0: not known, or not of the whole way
  double echo_s = 0;        // of the slower of its two agents; 0: not known
  double contradiction_s = 0;
};

using Waits = std::map<int, WaitRecord>;

Watched Watch(const LinkTraffic& link, const std::vector<Passage>& passages, const Waits& waits) {
  std::vector<double> least, most, unexplained;
  Watched watched{.link = link, .portions = passages.size()};
  const auto waited = [&](int rank, const TcpSocket& socket, const Passage& passage) {
    return waits.at(rank).Between(passage.after_s + socket.clock_ahead_s,
                                  passage.by_s + socket.clock_ahead_s);
  };
  for (const Passage& passage : passages) {
    const auto from = waited(link.from, *link.writer, passage);
    const auto to = waited(link.to, *link.reader, passage);
    least.push_back(passage.least_s);
    most.push_back(passage.most_s);
    watched.waits_known = watched.waits_known && from && to;
    unexplained.push_back(from && to ? std::max(0.0, passage.least_s - *from - *to) : 0);
    watched.contradiction_s = std::max(watched.contradiction_s, -passage.most_s);
    watched.longest_s = std::max(watched.longest_s, passage.least_s);
    watched.told_s += passage.told_s.value_or(0) / static_cast<double>(passages.size());
  }
  watched.least_s = HabitOf(least);
  watched.most_s = HabitOf(most);
  watched.unexplained_s = HabitOf(unexplained);
  watched.unexplained_times = std::move(unexplained);
  if (link.relayed()) return watched;
  std::vector<double> trips;
  for (const ByteStep& step : link.writer->written_steps) trips.push_back(step.round_trip_s);
  watched.round_trip_s = stats::Median(trips);
  return watched;
}

// Those that tell something of a habit, the slowest last.
std::vector<Watched> WatchedLinks(const Ranks& evidence) {
  Waits waits;
  std::map<int, double> echoes;
  for (const RankEvidence* rank : evidence) {
    waits.emplace(rank->rank, *rank);
    echoes[rank->rank] = rank->echo_s;
  }
  std::vector<Watched> all;
  for (const LinkTraffic& link : TrafficOf(evidence, true)) {
    const std::vector<Passage> passages = PassagesOf(*link.writer, *link.reader);
    if (passages.size() < kWindows) continue;
    Watched& watched = all.emplace_back(Watch(link, passages, waits));
    const double from_s = echoes[link.from], to_s = echoes[link.to];
    if (from_s > 0 && to_s > 0) watched.echo_s = std::max(from_s, to_s);
  }
  std::ranges::sort(all, {}, &Watched::least_s);
  return all;
}

// What all links of a run say of each of them.
struct Common {
  double usual_s = 0;
  double spread_s = 0;  // median absolute deviation
  double contradiction_s = 0;

  explicit Common(const std::vector<Watched>& sorted) {
    std::vector<double> times, deviations;
    for (const Watched& one : sorted) {
      times.push_back(one.least_s);
      contradiction_s = std::max(contradiction_s, one.contradiction_s);
    }
    const double middle_s = LowerMedianOf(times);
    for (const double time : times) deviations.push_back(std::abs(time - middle_s));
    spread_s = LowerMedianOf(deviations);
    // All links of one rank of four are half of all: still, a quarter are others.
    usual_s = times[(times.size() - 1) / 4];
  }

  // Where there is no other link, as between two hosts, it may itself have been better once.
  double UsualOf(const Watched& one) const {
    const double best_s = one.link.relayed() ? 0 : one.link.least_round_trip_s;
    return best_s > 0 ? std::min(usual_s, best_s) : usual_s;
  }
  double LimitOf(const Watched& one) const {
    return std::max(
        {kLeastSlowSeconds, kTimesUsual * UsualOf(one), kTimesSpread * spread_s, contradiction_s});
  }
};

// The sender's kernel counts what it had to send again; a relay, which is the wire then, what it
// lost. A relay's word alone is none: late bytes must have been seen. How late is a lower bound,
// which rare looks make small, so that it is not compared with what the relay was told. The count
// of a kernel tells no link from a host: a receiver that is busy drops segments, too.
bool Loses(const Watched& one) {
  const LinkTraffic& link = one.link;
  const double segments = std::max(static_cast<double>(link.arrivals),
                                   static_cast<double>(link.received) / kSegmentBytes);
  if (link.retransmits < kRetransmitsOfLoss || link.retransmits < kLossyShare * segments) {
    return false;
  }
  if (link.relayed()) return one.longest_s >= kLeastSlowSeconds;
  const auto& steps = link.writer->written_steps;
  const double limited_s = steps.back().limited_s - steps.front().limited_s;
  return limited_s < kMostLimitedShare * (steps.back().by_s - steps.front().by_s);
}

// An echo that was as late tells no link from a host.
std::string WhyEchoProvesNothing(const Watched& one, double late_s) {
  if (one.echo_s == 0) return "what an echo between its agents takes is not known";
  if (one.echo_s < kMostEchoShare * late_s) return "";
  return fmt::format("an echo between its agents, over another connection, took {}, too",
                     FormatDuration(one.echo_s * 1e9));
}

// Why it is not proved that it is slow, or "".
std::string WhyNotProved(const Watched& one, double limit_s) {
  if (one.unexplained_s <= limit_s) {
    return one.waits_known ? "processes at its ends waited for a processor meanwhile"
                           : "how long processes at its ends waited for a processor is not known";
  }
  if (!one.link.relayed() && one.round_trip_s == 0) return "the kernel's round trips are not known";
  if (!one.link.relayed() && one.round_trip_s < kLeastShareOfTransit * one.least_s) {
    return "the sender's kernel measured round trips of " + FormatDuration(one.round_trip_s * 1e9);
  }
  return WhyEchoProvesNothing(one, one.unexplained_s);
}

// Why it is not proved that the link loses what is lost on it, or "". Who sends again what a
// busy host dropped waits for that host; as many late portions as lost ones, for which nobody at
// either end waited, and an echo that was not late, leave the link.
std::string WhyLossIsNotProved(const Watched& one, double limit_s) {
  if (one.link.relayed()) return "";
  const auto late =
      std::ranges::count_if(one.unexplained_times, [&](double time_s) { return time_s > limit_s; });
  if (late < kRetransmitsOfLoss) {
    return fmt::format(
        "of {} segments that were sent again the hosts may have dropped some; {} portions were "
        "late for which no process waited",
        one.link.retransmits, late);
  }
  return WhyEchoProvesNothing(one, limit_s);
}

struct Slow {
  std::vector<Watched> links = {};  // the slowest last
  bool proved = false;
  std::string doubt = {};  // why not, of the slowest
  double usual_s = 0;
};

// Proved ones, or if there are none those that are suspected.
Slow FindSlow(const Ranks& evidence) {
  const std::vector<Watched> links = WatchedLinks(evidence);
  if (links.size() < 2) return {};
  const Common common(links);
  Slow proved{.proved = true, .usual_s = common.usual_s}, suspected{.usual_s = common.usual_s};
  for (const Watched& one : links) {
    const double limit_s = common.LimitOf(one);
    const bool slow = one.least_s > limit_s, loses = Loses(one);
    if (!slow && !loses) continue;
    std::string doubt = slow ? WhyNotProved(one, limit_s) : WhyLossIsNotProved(one, limit_s);
    if (slow && loses && !doubt.empty()) doubt = WhyLossIsNotProved(one, limit_s);
    if (doubt.empty()) {
      proved.links.push_back(one);
    } else {
      suspected.links.push_back(one);
      suspected.doubt = doubt;
    }
  }
  return proved.links.empty() ? suspected : proved;
}

std::string Describe(const Watched& one, double usual_s) {
  std::string text = fmt::format(
      "link {} -> {}: bytes are on the way for {} or more as a rule (in {} portions), for {} on "
      "most links of this run",
      one.link.from, one.link.to, FormatDuration(one.least_s * 1e9), one.portions,
      FormatDuration(usual_s * 1e9));
  if (one.link.relayed()) {
    text += fmt::format("; its relay was told to hold them back for {} on average",
                        FormatDuration(one.told_s * 1e9));
  } else if (one.round_trip_s > 0) {
    text +=
        "; the sender's kernel measured round trips of " + FormatDuration(one.round_trip_s * 1e9);
  }
  if (one.link.retransmits > 0) {
    text += fmt::format("; {} segments were lost and sent again", one.link.retransmits);
  }
  return text;
}

Headline HeadlineOf(const Watched& one, double usual_s) {
  Headline headline(fmt::format("link {} -> {} is slow", one.link.from, one.link.to));
  headline.Add(": bytes take {} or more, {} on most links", FormatDuration(one.least_s * 1e9),
               FormatDuration(usual_s * 1e9));
  if (one.link.retransmits > 0) {
    headline.Add("; {} segments were lost", one.link.retransmits);
  }
  return headline;
}

std::vector<LinkTraffic> LinksOf(const Slow& slow) {
  std::vector<LinkTraffic> links;
  for (const Watched& one : slow.links) links.push_back(one.link);
  return links;
}

}  // namespace

std::vector<LinkTraffic> SlowLinks(const Ranks& evidence) { return LinksOf(FindSlow(evidence)); }

std::string WhyNoneIsKnown(const Ranks& evidence) {
  for (const LinkTraffic& link : TrafficOf(evidence, true)) {
    const std::size_t portions = PassagesOf(*link.writer, *link.reader).size();
    if (link.received == 0 || portions >= kWindows) continue;
    return fmt::format("looks saw bytes pass link {} -> {} {} times; {} times tell of a habit",
                       link.from, link.to, portions, kWindows);
  }
  const std::vector<Watched> links = WatchedLinks(evidence);
  if (links.size() < 2) return "fewer than two links carried bytes";
  const Common common(links);
  for (const Watched& one : links) {
    if (one.most_s <= common.LimitOf(one)) continue;
    return fmt::format("late looks tell of link {} -> {} only that bytes took {} to {}",
                       one.link.from, one.link.to, FormatDuration(one.least_s * 1e9),
                       FormatDuration(one.most_s * 1e9));
  }
  return "";
}

std::vector<Finding> FindSlowLinks(const Ranks& evidence) {
  const Slow slow = FindSlow(evidence);
  if (slow.links.empty()) return {};
  const Watched& worst = slow.links.back();
  Finding finding{
      .cause = Cause::kSlowLink, .culprits = CommonEnds(LinksOf(slow)), .proved = slow.proved};
  finding.headline = HeadlineOf(worst, slow.usual_s);
  finding.message = Describe(worst, slow.usual_s);
  if (slow.links.size() > 1) {
    const Watched& next = slow.links[slow.links.size() - 2];
    finding.message += fmt::format("; link {} -> {} {}", next.link.from, next.link.to,
                                   FormatDuration(next.least_s * 1e9));
  }
  if (slow.links.size() > 2) {
    finding.message += fmt::format(", and {} more", slow.links.size() - 2);
  }
  if (!slow.proved) finding.message += "; not proved: " + slow.doubt;
  finding.remedy = fmt::format(
      "Measure latency, rate and loss between the hosts of rank {} and rank {} (ping, iperf, "
      "ethtool -S), and compare the route and the speed of their interfaces with those of others.",
      worst.link.from, worst.link.to);
  return {finding};
}

}  // namespace lockstep::verdict::links
