// The line that a person sees while cases are measured.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace lockstep::bench::measure {

struct Progress {
  int repetition = 0;
  std::size_t cases = 0;
  std::size_t visited = 0;
  std::size_t done = 0;
  double seconds_left = std::numeric_limits<double>::infinity();  // infinite: unknown
  // The case of the newest batch, and its median so far; 0: it has none.
  std::string newest = {};
  double newest_ns = 0;
};

// "3 of 190 cases visited, 0 done, about 50 s left; …f32/sum/64: 912 ns so far", shorter than a
// line of a terminal: of a long name its end is kept.
std::string ProgressText(const Progress& progress);

}  // namespace lockstep::bench::measure
