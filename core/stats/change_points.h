// When did the level of a series of nights change, and which nights are outliers? Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::stats {

// A stretch of nights at one level: [first, last].
struct LevelSegment {
  std::size_t first = 0;
  std::size_t last = 0;
  double level = 0;  // median of its values
};

struct Segments {
  std::vector<LevelSegment> segments;  // in order, without gaps; one when nothing changed
  std::vector<std::size_t> outliers;   // values that belong to no level, ascending
  double noise = 0;                    // standard deviation of a night around its level
};

struct ChangeOptions {
  double noise_min = 0.003;  // less scatter than this is taken for this much
  double change_min = 0.02;  // levels that differ by less are one
};

// `values`: finite, in order of time; of at least one night. With fewer than kFewestNights nothing
// is said: one segment, no outliers. See change_points.cc for the method and what it finds.
inline constexpr std::size_t kFewestNights = 8;
Segments FindChangePoints(std::span<const double> values, const ChangeOptions& options = {});

}  // namespace lockstep::stats
