// The wait-for graph over ranks and communicators: who waits for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/verdict/situation.h"

namespace lockstep::verdict {

// Who can never go on. Pure consequence of what is proved: nobody's silence matters.
struct Stuck {
  static constexpr std::int32_t kNobody = -1;
  // All by index of the views.
  std::vector<bool> ranks;              // waits for ever
  std::vector<std::int32_t> waits_for;  // whom, of those that will not come
  std::vector<std::int32_t> root;       // who is gone at the end of that chain, or kNobody
  // Views that wait for each other in a ring, each for the next one, over more than one
  // communicator; empty: there is none.
  std::vector<std::size_t> cycle;
};
// Ranks of a mismatch that stops them are stuck. `one_stream`: as in Setting.
Stuck FindStuck(const Situation& situation, const std::vector<Mismatch>& mismatches,
                bool one_stream);

}  // namespace lockstep::verdict
