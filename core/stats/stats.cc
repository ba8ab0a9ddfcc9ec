// How EstimateMedian works, and why.
//
// An interval between two order statistics, x(n/2 - h) and x(n/2 + h): it holds whatever the shape
// of the distribution (heavy tails, two modes, any monotone change of scale), because all that
// counts is how many rounds lie below the long-run median. For independent rounds that is a
// binomial number and h = z sqrt(n) / 2 (the sign test; linear between order statistics:
// Hettmansperger and Sheather 1986, "Confidence intervals based on interpolated order statistics").
// For correlated rounds its variance is tau times larger, with tau the integrated autocorrelation
// time of the signs s_t = sign(x_t - median); so h = t sqrt(n tau) / 2.
//
// tau is the larger of two estimates, and at least 1:
// - the initial monotone sequence of the autocorrelations of the signs (Geyer 1992, "Practical
//   Markov chain Monte Carlo", section 3.3). Each is raised by tau / n, the bias of subtracting the
//   sample's own median instead of the true one. It sees the correlation of neighbouring rounds. It
//   is rough when few independent rounds stand behind it, and a stop rule looks again and again
//   until luck makes it small: so it is raised by 1 + 2 sqrt(tau / n), the order of its relative
//   error.
// - the mean of the first two squared cosine transforms of the signs (Lazarus, Lewis, Stock and
//   Watson 2018, "HAR inference: recommendations for practice", the EWC estimate). It sees slow
//   drift.
// t is Student's, with n / tau - 1/2 degrees of freedom.
//
// Where the rounds are too few for that, log x is taken for normal. Its deviation comes from the
// rounds and from a guess together, and the interval is the median times and by a factor: one round
// gives 3.7, two give 2, eight 1.3. So there is an interval for everything, and it is positive.
//
// Percent of 1000 simulated series whose 95 % interval covers the long-run median, and behind it
// the median half width in percent of that median. Noise is 10 %. "ar": log latency is
// autoregressive; "tails": ar 0.3, and 15 % of rounds take a Pareto(1.2) hit; "modes a/b": the
// machine stays a rounds in one mode, b in another that is 22 % slower, on average; "drift": plus
// an autoregression of 0.98 a round with 0.2 of the noise. "stop": looked at after every round from
// the 8th until the half width is 5 % or 200 rounds are over: coverage / rounds used on average.
// Some of the columns that stats_coverage_test prints:
//
//   rounds              1         2        3        8       12       32      64     200  stop
//   independent 100/267.8  100/95.2 100/62.2 100/24.5 100/15.5  100/6.8  99/4.2  98/2.1  98/54
//   ar 0.3      100/267.8  100/94.5 100/62.6 100/26.2 100/16.0   99/8.4  98/5.1  97/2.6  98/73
//   ar 0.5      100/267.8  100/94.0 100/62.7 100/27.1  99/16.7  98/10.1  98/6.3  97/3.2  93/93
//   ar 0.7      100/267.8  100/93.2 100/63.7 100/28.1  98/17.7  97/11.5  98/9.5  97/4.4  94/134
//   tails       100/269.2  100/96.3 100/69.4 100/32.0 100/26.2  99/10.1  99/5.9  98/2.9  98/89
//   modes 8/3   100/267.7  100/93.1 100/65.0  99/25.7  97/16.0  98/10.6  98/5.2  97/1.9  99/68
//   modes 3/3   100/270.6  100/98.3 100/64.1 100/27.0  99/16.9  96/11.2  96/9.1  96/6.9  81/175
//   modes 5/5   100/269.2  100/96.4 100/62.5 100/26.5  95/17.6  91/12.6 94/10.6  94/7.9  65/152
//   drift       100/268.8  100/95.4 100/61.6 100/24.0 100/15.3   97/6.8  94/4.2  88/2.4  95/58
//   noise 40 %  100/265.2 100/116.0  99/97.0  99/68.1  99/58.6  99/34.5 98/20.6 97/10.4  97/200
//
// What no method can do with so few rounds shows in the last lines: where the median lies in the
// gap between two modes, a stop rule that asks for less than the gap stops when luck shows one mode
// only; and a drift slower than the whole series can't be seen in it.
#include "core/stats/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/base/check.h"

namespace lockstep::stats {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is believed before a round is seen: that rounds differ by a quarter, as they do on a machine
// that others use. It has the weight of three rounds, and fades where the rounds tell enough
// themselves; how fast was chosen by what covers.
constexpr double kGuessedDeviation = 0.25;
constexpr double kGuessWeight = 3;
constexpr double kGuessFades = 9;  // half of the weight is left after so many rounds
constexpr double kFadePower = 4;

// z with P(|Z| < z) = confidence for a standard normal Z; by bisection, to about 1e-12.
double TwoSidedNormalQuantile(double confidence) {
  double low = 0, high = 40;
  for (int i = 0; i < 60; ++i) {
    const double z = (low + high) / 2;
    (std::erf(z / std::numbers::sqrt2) < confidence ? low : high) = z;
  }
  return (low + high) / 2;
}

// The same for Student's t: the expansion of Abramowitz and Stegun 1964, 26.7.5. Within 1 % from 3
// degrees of freedom; with fewer, no 95 % interval fits into the sample.
double TwoSidedStudentQuantile(double confidence, double degrees) {
  const double z = TwoSidedNormalQuantile(confidence);
  const double z2 = z * z;
  const double first = (z2 + 1) * z / 4;
  const double second = ((5 * z2 + 16) * z2 + 3) * z / 96;
  const double third = (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384;
  return z + (first + (second + third / degrees) / degrees) / degrees;
}

// Autocorrelation of the signs at this lag, raised by `bias`.
double Autocorrelation(std::span<const double> signs, std::size_t lag, double bias) {
  double sum = 0;
  for (std::size_t i = lag; i < signs.size(); ++i) sum += signs[i] * signs[i - lag];
  return sum / static_cast<double>(signs.size() - lag) + bias;
}

// Geyer's initial monotone sequence: pairs of neighbouring lags are summed while they are positive,
// none larger than the one before.
double MonotoneSequenceTime(std::span<const double> signs, double bias) {
  double time = -1;
  double previous = kInfinity;
  for (std::size_t lag = 0; lag + 1 <= signs.size() / 2; lag += 2) {
    const double even = lag == 0 ? 1 : Autocorrelation(signs, lag, bias);
    const double pair = std::min(previous, even + Autocorrelation(signs, lag + 1, bias));
    if (pair <= 0) break;
    time += 2 * pair;
    previous = pair;
  }
  return std::max(1.0, std::min(time, static_cast<double>(signs.size()) / 2));
}

// Mean of the first two squared cosine transforms.
double LowFrequencyTime(std::span<const double> signs) {
  constexpr int kCosines = 2;
  const auto n = static_cast<double>(signs.size());
  double power = 0;
  for (int j = 1; j <= kCosines; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < signs.size(); ++i) {
      sum += signs[i] * std::cos(std::numbers::pi * j * (static_cast<double>(i) + 0.5) / n);
    }
    power += 2 * sum * sum / n;
  }
  return power / kCosines;
}

std::vector<double> SignsAround(double median, std::span<const double> values) {
  std::vector<double> signs;
  signs.reserve(values.size());
  for (const double value : values) signs.push_back(value > median ? 1 : value < median ? -1 : 0);
  return signs;
}

// The value at a fractional rank 1..n of sorted values.
double AtRank(std::span<const double> sorted, double rank) {
  const double whole = std::floor(rank);
  const auto index = static_cast<std::size_t>(whole) - 1;
  if (index + 1 >= sorted.size()) return sorted.back();
  return sorted[index] + (rank - whole) * (sorted[index + 1] - sorted[index]);
}

// How far from the median of few positive rounds the long-run median may lie, as a factor. log x is
// taken for normal, with a deviation that the rounds and the guess tell together (a conjugate
// prior: Gelman et al. 2013, "Bayesian Data Analysis", section 3.3). A median needs pi / 2 times as
// many rounds as a mean. `time`: of correlation, in rounds.
double FactorOfFewRounds(std::span<const double> values, double median, double time,
                         double confidence) {
  const auto n = static_cast<double>(values.size());
  const double weight = kGuessWeight / (1 + std::pow(n / kGuessFades, kFadePower));
  double squares = weight * kGuessedDeviation * kGuessedDeviation;
  for (const double value : values) squares += std::pow(std::log(value / median), 2);
  const double degrees = weight + n - 1;
  const double error = std::sqrt(squares / degrees * time / n * std::numbers::pi / 2);
  return std::exp(TwoSidedStudentQuantile(confidence, degrees) * error);
}

// Of sorted values that are too few to bound their median themselves.
void BoundByGuess(std::span<const double> sorted, double time, double confidence,
                  MedianInterval& interval) {
  const bool positive = sorted.front() > 0;
  const double factor =
      positive ? FactorOfFewRounds(sorted, interval.median, time, confidence) : kInfinity;
  interval.low = positive ? interval.median / factor : -kInfinity;
  interval.high = positive ? interval.median * factor : kInfinity;
}

}  // namespace

double Quantile(std::span<const double> values, double p) {
  LOCKSTEP_CHECK(!values.empty(), "a quantile of no values");
  LOCKSTEP_CHECK(p >= 0 && p <= 1, "a quantile is between 0 and 1");
  std::vector<double> copy(values.begin(), values.end());
  const double position = p * static_cast<double>(copy.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  std::nth_element(copy.begin(), copy.begin() + below, copy.end());
  const double low = copy[static_cast<std::size_t>(below)];
  const double fraction = position - static_cast<double>(below);
  if (fraction == 0) return low;
  return low + fraction * (*std::min_element(copy.begin() + below + 1, copy.end()) - low);
}

double Median(std::span<const double> values) { return Quantile(values, 0.5); }

bool QuantileIsSupported(std::size_t n, double p) {
  constexpr double kRounding = 1e-9;  // 10 samples support the 0.9-quantile, although 1 - 0.9 < 0.1
  return static_cast<double>(n) * std::min(p, 1 - p) >= 1 - kRounding;
}

double MedianInterval::relative_half_width() const {
  if (!(median > 0)) return kInfinity;
  return std::max(high - median, median - low) / median;
}

MedianInterval EstimateMedian(std::span<const double> round_medians, double confidence) {
  LOCKSTEP_CHECK(confidence > 0 && confidence < 1, "a confidence is between 0 and 1");
  MedianInterval interval;
  interval.median = Median(round_medians);

  std::vector<double> sorted(round_medians.begin(), round_medians.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(round_medians.size());
  const std::vector<double> signs = SignsAround(interval.median, round_medians);
  const double near = MonotoneSequenceTime(signs, MonotoneSequenceTime(signs, 1 / n) / n);
  const double slow = LowFrequencyTime(signs);
  interval.correlation_rounds = std::max(near, slow);
  const double time = std::max(near * (1 + 2 * std::sqrt(near / n)), slow);
  const double degrees = std::max(1.0, n / time - 0.5);
  const double half = TwoSidedStudentQuantile(confidence, degrees) * std::sqrt(n * time) / 2;
  const double middle = (n + 1) / 2;
  if (half <= middle - 1) {
    interval.low = AtRank(sorted, middle - half);
    interval.high = AtRank(sorted, middle + half);
    return interval;
  }
  BoundByGuess(sorted, time, confidence, interval);
  return interval;
}

MedianInterval EstimateMedianOfIndependent(std::span<const double> values, double confidence) {
  LOCKSTEP_CHECK(confidence > 0 && confidence < 1, "a confidence is between 0 and 1");
  MedianInterval interval;
  interval.median = Median(values);
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(values.size());
  // x(k) .. x(n + 1 - k) covers at least `outer`, the next two inside of them `inner`.
  double k = 0, outer = 1, inner = 1;
  for (double beyond = 0;; ++k, outer = inner) {
    beyond += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                       n * std::numbers::ln2);
    inner = 1 - 2 * beyond;
    if (inner < confidence) break;
  }
  if (k == 0) {
    BoundByGuess(sorted, 1, confidence, interval);
    return interval;
  }
  const double part = (outer - confidence) / (outer - inner);
  const double inward = (n - k) * part / (k + (n - 2 * k) * part);
  interval.low = AtRank(sorted, k + inward);
  interval.high = AtRank(sorted, n + 1 - k - inward);
  return interval;
}

}  // namespace lockstep::stats
