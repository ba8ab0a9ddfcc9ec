// How EstimateShift works, and why.
//
// Launches are the replicates, few, and not normal: a neighbour on the machine makes one of them
// 20 % slower, a placement of ranks gives two modes. So nothing is assumed but that the launches
// could as well have been taken the other way round if nothing has changed: the rank test of Mann
// and Whitney 1947, whose null distribution is a count, and the shift of Hodges and Lehmann 1963,
// the median of all differences, with the interval that inverts the test (order statistics of the
// differences; Lehmann 1975, "Nonparametrics", section 2.6). At most 1 in (m+n choose m) same sets
// of m and n values have all of the candidate's above the base's, whatever the noise.
//
// Values that are drawn one after the other from a machine that drifts are not exchangeable, unless
// the launches of both sides were interleaved. For those that were not, the caller names an
// allowance.
//
// Clearly above: ranks cannot prove more than 1 in (m+n choose m), which many comparisons would
// need, although everybody sees that three times is not noise. For normal noise a gap as wide as
// the wider range is beyond 4 standard errors for 4 a side, 7 for 5; for no noise is it more
// frequent than the rank test says (1/70 for 4 a side; 1/256 for two equal modes far apart).
#include "core/stats/two_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/base/check.h"
#include "core/stats/stats.h"

namespace lockstep::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostExact = 60;  // values of both sides
constexpr double kRounding = 1e-9;

// All differences candidate - base, sorted.
std::vector<double> Differences(std::span<const double> base, std::span<const double> candidate) {
  std::vector<double> differences;
  differences.reserve(base.size() * candidate.size());
  for (const double b : base) {
    for (const double c : candidate) differences.push_back(c - b);
  }
  std::ranges::sort(differences);
  return differences;
}

// Distribution of U for m and n values: probability of each u. By Mann and Whitney's recursion on
// which side has the largest value: N(m, n, u) = N(m, n-1, u-m) + N(m-1, n, u), as probabilities.
std::vector<double> ExactDistribution(std::size_t m, std::size_t n) {
  std::vector<std::vector<double>> row(n + 1, std::vector<double>{1});  // m = 0: u = 0
  for (std::size_t i = 1; i <= m; ++i) {
    std::vector<std::vector<double>> next(n + 1);
    next[0] = {1};
    for (std::size_t j = 1; j <= n; ++j) {
      std::vector<double> p(i * j + 1, 0);
      const auto all = static_cast<double>(i + j);
      const double candidate_on_top = static_cast<double>(j) / all;
      const double base_on_top = static_cast<double>(i) / all;
      for (std::size_t u = 0; u < next[j - 1].size(); ++u) {
        p[u + i] += candidate_on_top * next[j - 1][u];
      }
      for (std::size_t u = 0; u < row[j].size(); ++u) p[u] += base_on_top * row[j][u];
      next[j] = std::move(p);
    }
    row = std::move(next);
  }
  return row[n];
}

double NormalTail(std::size_t m, std::size_t n, double u) {
  const auto mn = static_cast<double>(m) * static_cast<double>(n);
  const double deviation = std::sqrt(mn * static_cast<double>(m + n + 1) / 12);
  return std::erfc((u - 0.5 - mn / 2) / deviation / std::numbers::sqrt2) / 2;
}

// P(U >= u) for every whole u, and 0 beyond.
std::vector<double> Tails(std::size_t m, std::size_t n) {
  std::vector<double> tails(m * n + 2, 0);
  if (m + n <= kMostExact) {
    const std::vector<double> p = ExactDistribution(m, n);
    for (std::size_t u = p.size(); u-- > 0;) tails[u] = std::min(1.0, tails[u + 1] + p[u]);
  } else {
    for (std::size_t u = 0; u <= m * n; ++u) tails[u] = NormalTail(m, n, static_cast<double>(u));
  }
  return tails;
}

// Comparisons of one pair of sets have the same numbers of launches, so the last one is kept.
const std::vector<double>& CachedTails(std::size_t m, std::size_t n) {
  struct Cache {
    std::size_t m = 0, n = 0;
    std::vector<double> tails;
  };
  thread_local Cache cache;
  if (cache.m != m || cache.n != n || cache.tails.empty()) cache = {m, n, Tails(m, n)};
  return cache.tails;
}

// Half a pair more is needed to reach the next whole u: ties are counted against a difference.
double Tail(const std::vector<double>& tails, double u) {
  const auto whole = static_cast<std::size_t>(std::max(0.0, std::floor(u + kRounding)));
  return tails[std::min(whole, tails.size() - 1)];
}

double PairsAbove(const std::vector<double>& sorted, double shift) {
  const auto low = std::lower_bound(sorted.begin(), sorted.end(), shift);
  const auto high = std::upper_bound(low, sorted.end(), shift);
  return static_cast<double>(sorted.end() - high) + static_cast<double>(high - low) / 2;
}

double Range(std::span<const double> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *high - *low;
}

// How many of the differences lie outside the interval on either side: the largest k with
// P(U >= mn - k + 1) <= alpha / 2; 0: not even all of them are enough.
std::size_t Outside(const std::vector<double>& tails, std::size_t pairs, double confidence) {
  std::size_t k = 0;
  while (k < pairs / 2 && tails[pairs - k] <= (1 - confidence) / 2) ++k;
  return k;
}

}  // namespace

Shift EstimateShift(std::span<const double> base, std::span<const double> candidate,
                    double confidence, double allowance) {
  LOCKSTEP_CHECK(!base.empty() && !candidate.empty(), "a shift between two sets of values");
  LOCKSTEP_CHECK(confidence > 0 && confidence < 1, "a confidence is between 0 and 1");
  LOCKSTEP_CHECK(allowance >= 0, "an allowance is not negative");
  const std::vector<double> differences = Differences(base, candidate);
  const std::vector<double>& tails = CachedTails(base.size(), candidate.size());
  const std::size_t pairs = differences.size();
  Shift shift;
  shift.estimate = Median(differences);
  shift.p_above = Tail(tails, PairsAbove(differences, allowance));
  shift.p_below = Tail(tails, static_cast<double>(pairs) - PairsAbove(differences, -allowance));
  const std::size_t outside = Outside(tails, pairs, confidence);
  shift.low = -kInfinity;
  shift.high = kInfinity;
  if (outside > 0) {
    shift.low = shift.estimate - std::hypot(shift.estimate - differences[outside - 1], allowance);
    shift.high =
        shift.estimate + std::hypot(differences[pairs - outside] - shift.estimate, allowance);
  }
  const double gap = std::max(Range(base), Range(candidate)) + allowance;
  shift.clearly_above = differences.front() > gap;
  shift.clearly_below = differences.back() < -gap;
  return shift;
}

double RankSumTail(std::size_t base, std::size_t candidate, double u) {
  LOCKSTEP_CHECK(base > 0 && candidate > 0, "both sides have values");
  return Tail(CachedTails(base, candidate), u);
}

double SmallestTail(std::size_t base, std::size_t candidate) {
  double ways = 1;
  for (std::size_t i = 1; i <= candidate; ++i) {
    ways *= static_cast<double>(base + i) / static_cast<double>(i);
  }
  return 1 / ways;
}

std::vector<double> AdjustForMany(std::span<const double> p_values) {
  const std::size_t n = p_values.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(n);
  double smallest = 1;
  for (std::size_t rank = n; rank-- > 0;) {
    const double scaled =
        p_values[order[rank]] * static_cast<double>(n) / static_cast<double>(rank + 1);
    smallest = std::min(smallest, scaled);
    adjusted[order[rank]] = smallest;
  }
  return adjusted;
}

}  // namespace lockstep::stats
