// Statistics of one run: medians of rounds and how well they are known. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace lockstep::stats {

// The p-quantile (0..1) by linear interpolation between order statistics (Hyndman and Fan 1996,
// type 7). `values` needs at least one element, all finite.
double Quantile(std::span<const double> values, double p);
double Median(std::span<const double> values);

// Whether n samples can support the p-quantile: at least one sample is expected beyond it
// (n * min(p, 1-p) >= 1).
bool QuantileIsSupported(std::size_t n, double p);

// A median and the interval in which the long-run median lies with the stated confidence.
struct MedianInterval {
  double median = 0;
  double low = 0;   // -infinity when there are too few rounds, and one of them is not positive
  double high = 0;  // +infinity likewise
  // Integrated autocorrelation time, in rounds, of being above or below the median, >= 1. The
  // interval is widened by its square root and by the doubt about it.
  double correlation_rounds = 1;
  // max(high - median, median - low) / median; infinity when unknown or when median <= 0.
  double relative_half_width() const;
};

// `round_medians`: one value a round, in order of time; at least one, all finite. Few positive
// rounds give a wide interval, one round a factor of 3.7 at 95 %. `confidence` is in (0, 1). See
// stats.cc for the method, its sources, and how often the interval covers.
MedianInterval EstimateMedian(std::span<const double> round_medians, double confidence = 0.95);

// The same of values that do not depend on each other, as those of launches. With six or more, the
// 95 % interval lies between order statistics and assumes no shape (Hettmansperger and Sheather
// 1986). Fewer take a guess into account, as EstimateMedian does.
MedianInterval EstimateMedianOfIndependent(std::span<const double> values,
                                           double confidence = 0.95);

}  // namespace lockstep::stats
