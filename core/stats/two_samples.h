// Are two sets of launches different, by how much, and how many more would tell? Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::stats {

// How far the candidate's values lie above the base's. See two_samples.cc for the methods.
struct Shift {
  double estimate = 0;  // median of all differences candidate - base
  double low = 0;       // its confidence interval; -infinity when there are too few values
  double high = 0;      // +infinity likewise
  double p_above = 1;   // one-sided: values as high as these if the true shift were <= `allowance`
  double p_below = 1;   // values as low as these if it were >= -`allowance`
  // Every candidate value lies above (below) every base value, by more than `allowance` and the
  // range that the values of either side span among themselves.
  bool clearly_above = false;
  bool clearly_below = false;
};

// Both sides have at least one value, all finite; `allowance` >= 0 is a shift that proves nothing.
// The interval has `confidence` for shifts that the values show; the allowance widens it (added in
// quadrature to its halves).
Shift EstimateShift(std::span<const double> base, std::span<const double> candidate,
                    double confidence = 0.95, double allowance = 0);

// P(U >= u) of Mann and Whitney's U, the number of pairs in which the candidate's value is higher
// (ties count half), when both sides have the same distribution. Exact without ties for up to 60
// values in all, normal with continuity correction beyond.
double RankSumTail(std::size_t base, std::size_t candidate, double u);

// The smallest p_above that so many values can give: 1 / (base + candidate choose base).
double SmallestTail(std::size_t base, std::size_t candidate);

// Benjamini and Hochberg 1995, "Controlling the false discovery rate": the p-values adjusted so
// that taking all that are <= q for changes makes the expected part of false ones <= q, for
// independent or positively dependent tests. In the order of the input.
std::vector<double> AdjustForMany(std::span<const double> p_values);

}  // namespace lockstep::stats
