// What trials came to, and the first whose verdict is wrong, made small.
#pragma once

#include <cstdint>
#include <string>

#include "watch/fuzz/truth.h"

namespace lockstep::watch::fuzz {

struct Counts {
  std::int64_t trials = 0;
  std::int64_t silent = 0;   // nothing was said, rightly
  std::int64_t hangs = 0;    // ranks wait for ever
  std::int64_t unknown = 0;  // … and nobody can know all of them

  Counts& operator+=(const Assessment& assessment);
  Counts& operator+=(const Counts& other);
};

// Without the number of trials.
std::string Describe(const Counts& counts);

// With fewer steps, ranks and kinds of calls, as long as the verdict is wrong in the same way.
Program Shrink(const Program& program, const Spoil& spoil = {});

// Why the verdict on this seed's program is wrong, and the smallest one that fails alike.
std::string DescribeFailure(std::uint64_t seed, const Spoil& spoil = {});

}  // namespace lockstep::watch::fuzz
