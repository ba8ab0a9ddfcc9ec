// Ranks that slept in a collective while the others tried to go on, and then went on: slow, not
// hung. Stamps cannot name them, because all ranks leave late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/verdict/judge.h"

namespace lockstep::bench::measure {

struct Stall {
  int rank = 0;
  std::size_t case_index = 0;
  int repetition = 0;
  std::uint64_t event = 0;  // of its journal: the open invocation
  std::string where;
  std::string system;  // what the operating system says of it
  verdict::Headline headline;
};

// A rank that sleeps is a stall only once it is seen to have gone on: until then it may be hung.
class StallWatch {
 public:
  // A look at all ranks in the middle of a round.
  void Look(const std::vector<verdict::RankEvidence>& all, int repetition);
  // All ranks completed the round.
  void RoundDone();
  // The round ended otherwise. The last evidence of all ranks tells who is still in there.
  void Interrupted(const std::vector<verdict::RankEvidence>& all);
  const std::vector<Stall>& stalls() const { return stalls_; }

 private:
  std::vector<Stall> asleep_;  // of this round, not known to have gone on
  std::vector<Stall> stalls_;
};

}  // namespace lockstep::bench::measure
