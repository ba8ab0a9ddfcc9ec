// Median and interval of a case over its rounds (core/stats), widened by the drift that a sweep
// cannot see. Tails, bandwidths and the share of the floor follow. The parts of a step are
// summarized the same way.
#include "bench/measure/summarize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "bench/measure/visit_figure.h"
#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

constexpr std::int64_t kMostBlocks = 20;

using ValuesByRound = std::map<std::int32_t, std::vector<double>>;

std::vector<double> FiguresOfVisits(const plan::PlannedCase& planned, const ValuesByRound& visits) {
  std::vector<double> figures;
  for (const auto& [round, values] : visits) {
    figures.push_back(FigureOfVisit(CountsByMean(planned), values));
  }
  return figures;
}

// Fixed iterations come in one piece; consecutive blocks stand in for rounds.
std::vector<double> BlockMedians(const std::vector<double>& durations) {
  const auto rows = static_cast<std::int64_t>(durations.size());
  const std::int64_t blocks = std::min(kMostBlocks, rows);
  std::vector<double> medians;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const auto begin = durations.begin() + rows * block / blocks;
    const auto end = durations.begin() + rows * (block + 1) / blocks;
    medians.push_back(stats::Median(std::vector<double>(begin, end)));
  }
  return medians;
}

struct Durations {
  std::vector<double> longest_ns;  // over ranks, one a complete row
  std::vector<double> average_ns;  // over ranks: OSU's definition
  double max_ns = 0;
  int max_rank = -1;
};

Durations DurationsOf(const CaseBook& book, double ns_per_tick) {
  Durations durations;
  for (std::int64_t row = 0; row < book.complete_rows(); ++row) {
    double longest = 0;
    double sum = 0;
    for (std::size_t rank = 0; rank < book.ranks.size(); ++rank) {
      const auto k = static_cast<std::size_t>(row);
      const double ns =
          static_cast<double>(book.ranks[rank].exit[k] - book.ranks[rank].entry[k]) * ns_per_tick;
      sum += ns;
      longest = std::max(longest, ns);
      if (ns > durations.max_ns) {
        durations.max_ns = ns;
        durations.max_rank = static_cast<int>(rank);
      }
    }
    durations.longest_ns.push_back(longest);
    durations.average_ns.push_back(sum / static_cast<double>(book.ranks.size()));
  }
  return durations;
}

// Of all visits where the count is fixed, or where the first is the only one.
std::vector<double> FiguresOfCase(const CaseBook& book, const plan::PlannedCase& planned,
                                  const plan::Plan& plan, const Durations& durations) {
  if (!plan.iterations && !book.round_medians_ns.empty()) return book.round_medians_ns;
  if (!CountsByMean(planned)) return BlockMedians(durations.longest_ns);
  ValuesByRound visits;
  for (std::size_t row = 0; row < durations.longest_ns.size(); ++row) {
    visits[book.ranks.front().round[row]].push_back(durations.longest_ns[row]);
  }
  return FiguresOfVisits(planned, visits);
}

// The interval of the rounds (type A, in metrology's words) with the machine's drift (type B).
void AddInterval(const std::vector<double>& medians, double drift,
                 results::store::Summary& summary) {
  const stats::MedianInterval interval = stats::EstimateMedian(medians);
  const double slow = drift * interval.median;
  summary.rounds = static_cast<std::int64_t>(medians.size());
  summary.median_ns = interval.median;
  summary.rounds_low_ns = interval.low;
  summary.rounds_high_ns = interval.high;
  summary.interval_low_ns = interval.median - std::hypot(interval.median - interval.low, slow);
  summary.interval_high_ns = interval.median + std::hypot(interval.high - interval.median, slow);
}

// Without floors of the rounds: from those before and after them. The interval holds how far these
// are apart beside that of the median; factors, because the limit is a ratio.
void AddLimit(const std::vector<double>& floors_ns, results::store::Summary& summary) {
  const auto [least, most] = std::ranges::minmax(floors_ns);
  summary.floor_ns = std::sqrt(least * most);
  summary.percent_of_limit = 100 * summary.floor_ns / summary.median_ns;
  const double apart = std::log(most / least) / 2;
  const auto factor = [apart](double ratio) {
    return ratio > 0 ? std::exp(std::hypot(std::log(ratio), apart))
                     : std::numeric_limits<double>::infinity();
  };
  summary.limit_low =
      summary.percent_of_limit / factor(summary.interval_high_ns / summary.median_ns);
  summary.limit_high =
      summary.percent_of_limit * factor(summary.median_ns / summary.interval_low_ns);
}

double FloorOf(const plan::PlannedCase& planned, const plan::Plan& plan,
               const floors::HostFloors& host) {
  double ns = 0;
  for (const collective::Operation& operation : planned.operations) {
    ns += floors::FloorNs(host, planned.operations.front().collective,
                          collective::MessageBytes(operation, plan.world_size), plan.world_size);
  }
  return ns;
}

// Of each round by what the floor was just before it; of rounds of which that is not known, none.
std::vector<double> LimitsOfRounds(const CaseBook& book, const plan::PlannedCase& planned,
                                   const plan::Plan& plan, const floors::HostFloors& host) {
  std::vector<double> limits;
  for (std::size_t i = 0; i < book.round_crossings.size(); ++i) {
    const floors::Crossing& crossing = book.round_crossings[i];
    if (!std::isfinite(crossing.line_round_trip_ns)) continue;
    const double floor_ns = FloorOf(planned, plan, floors::With(crossing, host));
    if (std::isfinite(floor_ns)) limits.push_back(100 * floor_ns / book.round_medians_ns[i]);
  }
  return limits;
}

// What moves both a round and its floor is no part of the interval.
void AddLimitOfRounds(const std::vector<double>& limits, results::store::Summary& summary) {
  const stats::MedianInterval interval = stats::EstimateMedian(limits);
  summary.percent_of_limit = interval.median;
  summary.limit_low = interval.low;
  summary.limit_high = interval.high;
  summary.floor_ns = interval.median * summary.median_ns / 100;
}

void AddBandwidth(const CaseBook& book, const plan::PlannedCase& planned, const plan::Plan& plan,
                  const std::vector<floors::HostFloors>& floors, results::store::Summary& summary) {
  const collective::Collective collective = planned.operations.front().collective;
  const double bytes = static_cast<double>(plan::BytesOf(planned, plan.world_size));
  summary.algorithm_gbps = bytes / summary.median_ns;  // 1 byte a ns = 1e9 bytes a second
  summary.bus_gbps =
      summary.algorithm_gbps * collective::BusBandwidthFactor(collective, plan.world_size);
  if (floors.empty()) return;
  const std::vector<double> limits =
      plan.iterations ? std::vector<double>() : LimitsOfRounds(book, planned, plan, floors.front());
  if (!limits.empty() && 2 * limits.size() >= book.round_medians_ns.size()) {
    return AddLimitOfRounds(limits, summary);
  }
  std::vector<double> known;
  for (const floors::HostFloors& host : floors) {
    const double ns = FloorOf(planned, plan, host);
    if (std::isfinite(ns)) known.push_back(ns);
  }
  if (!known.empty()) AddLimit(known, summary);
}

void SetUnknown(results::store::Summary& summary) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double* figure :
       {&summary.median_ns, &summary.interval_low_ns, &summary.interval_high_ns, &summary.min_ns,
        &summary.p99_ns, &summary.max_ns, &summary.rank_average_median_ns, &summary.algorithm_gbps,
        &summary.bus_gbps, &summary.floor_ns, &summary.percent_of_limit}) {
    *figure = nan;
  }
}

// One value of all ranks in one iteration; NaN when a rank has none.
double OverRanks(const results::store::CaseRecord& record, const results::store::Part& part,
                 plan::RankReduction over, std::size_t row) {
  const auto ranks = static_cast<std::size_t>(record.samples.ranks);
  double sum = 0;
  double most = -std::numeric_limits<double>::infinity();
  double of_slowest = 0;
  std::int64_t longest = -1;
  for (std::size_t k = row * ranks; k < (row + 1) * ranks; ++k) {
    const std::int64_t exit = record.samples.exit_ns[k];
    if (exit == results::store::Samples::kNoTime || std::isnan(part.values[k])) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    sum += part.values[k];
    most = std::max(most, part.values[k]);
    if (exit - record.samples.entry_ns[k] <= longest) continue;
    longest = exit - record.samples.entry_ns[k];
    of_slowest = part.values[k];
  }
  if (over == plan::RankReduction::kMean) return sum / static_cast<double>(ranks);
  return over == plan::RankReduction::kMax ? most : of_slowest;
}

// The first round only calibrates, unless the count is fixed or there is no other.
std::vector<double> FiguresOfPart(const plan::PlannedCase& planned, bool calibrates,
                                  const results::store::CaseRecord& record,
                                  const results::store::Part& part, plan::RankReduction over) {
  ValuesByRound visits;
  for (std::size_t row = 0; row < record.samples.round.size(); ++row) {
    const double value = OverRanks(record, part, over, row);
    if (!std::isnan(value)) visits[record.samples.round[row]].push_back(value);
  }
  if (calibrates && visits.size() > 1) visits.erase(visits.begin());
  return FiguresOfVisits(planned, visits);
}

std::vector<double> AllValues(const results::store::CaseRecord& record,
                              const results::store::Part& part, plan::RankReduction over) {
  std::vector<double> values;
  for (std::size_t row = 0; row < record.samples.round.size(); ++row) {
    const double value = OverRanks(record, part, over, row);
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

}  // namespace

void SummarizeParts(const plan::PlannedCase& planned, const plan::Plan& plan,
                    results::store::CaseRecord& record) {
  for (std::size_t i = 0; i < record.parts.size(); ++i) {
    results::store::Part& part = record.parts[i];
    const plan::RankReduction over = planned.parts[i].over;
    const bool in_blocks = plan.iterations && !CountsByMean(planned);
    const std::vector<double> medians =
        in_blocks ? BlockMedians(AllValues(record, part, over))
                  : FiguresOfPart(planned, /*calibrates=*/!plan.iterations, record, part, over);
    part.median = part.interval_low = part.interval_high = std::numeric_limits<double>::quiet_NaN();
    if (medians.empty()) continue;
    const stats::MedianInterval interval = stats::EstimateMedian(medians);
    // A time drifts with the machine, a ratio does not.
    const double slow = part.units == "ns" ? plan.drift * interval.median : 0;
    part.median = interval.median;
    part.interval_low = interval.median - std::hypot(interval.median - interval.low, slow);
    part.interval_high = interval.median + std::hypot(interval.high - interval.median, slow);
  }
}

results::store::Summary Summarize(const CaseBook& book, const plan::PlannedCase& planned,
                                  const plan::Plan& plan,
                                  const std::vector<floors::HostFloors>& floors, double ns_per_tick,
                                  const std::string& stopped_by) {
  results::store::Summary summary{.iterations = book.complete_rows(),
                                  .checked_elements = book.checked,
                                  .wrong_elements = book.wrong_elements,
                                  .stopped_by = stopped_by};
  SetUnknown(summary);
  if (summary.iterations == 0) return summary;
  const Durations durations = DurationsOf(book, ns_per_tick);
  AddInterval(FiguresOfCase(book, planned, plan, durations), plan.drift, summary);
  for (const floors::Crossing& crossing : book.round_crossings) {
    summary.line_least_ns = std::fmin(summary.line_least_ns, crossing.line_round_trip_ns);
    summary.line_most_ns = std::fmax(summary.line_most_ns, crossing.line_round_trip_ns);
  }
  summary.min_ns = *std::min_element(durations.longest_ns.begin(), durations.longest_ns.end());
  if (stats::QuantileIsSupported(durations.longest_ns.size(), 0.99)) {
    summary.p99_ns = stats::Quantile(durations.longest_ns, 0.99);
  }
  summary.max_ns = durations.max_ns;
  summary.max_rank = durations.max_rank;
  summary.rank_average_median_ns = stats::Median(durations.average_ns);
  // A step is more than its operations: their bandwidth in it would say nothing.
  if (planned.parts.empty()) AddBandwidth(book, planned, plan, floors, summary);
  return summary;
}

}  // namespace lockstep::bench::measure
