// Calls of ranks that met in one position of a process group and are not the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/flight/job.h"
#include "core/verdict/outcome.h"

namespace lockstep::flight {

using verdict::Cause;
using verdict::Finding;
using verdict::Headline;

// The earliest position of a team in which calls differ: in what is called, in elements or in type,
// as far as PyTorch and the libraries want them to be the same (names of one kind are the same;
// what only a root gives is not compared; reductions and roots are not recorded). At most one a
// team.
struct FlightMismatch {
  struct Party {
    const FlightCall* call = nullptr;
    std::vector<int> ranks;
  };
  std::int32_t team = 0;
  std::uint64_t sequence = 0;
  Cause cause = Cause::kUnknown;  // of calls that differ
  std::vector<Party> parties;     // the largest first
  bool may_be_shifted = false;    // an old format, and a ring that lost calls: see Describe
};
std::vector<FlightMismatch> FindFlightMismatches(const FlightJob& job);

// Its ranks began a call of the group up to it no longer apart than clocks differ: so their dumps
// are of one run, however late one of them is now.
bool IsOfOneRun(const FlightJob& job, const FlightMismatch& mismatch);

// One of its ranks had ended all its calls before another of them began its first: an earlier run
// may have left its dump, even one that is hardly older than clocks differ.
bool IsOneLeftOver(const FlightJob& job, const FlightMismatch& mismatch);

// Whom most agree with is right; without a majority all are named. Proved, unless
// - the dumps may be of two runs,
// - only types of an all-to-all differ: ranks that exchange nothing need not agree,
// - PyTorch may have counted batches of messages, which the ring lost (before format 2.4).
Finding Describe(const FlightJob& job, const FlightMismatch& mismatch);

// "all_reduce Float[256] at train.py:57 in step"
std::string Describe(const FlightJob& job, const FlightCall& call);
// The same for a headline: "all_reduce at train.py:57 in step"
std::string NameOf(const FlightJob& job, const FlightCall& call);
// "default_pg", "tensor", "process group 3"
std::string NameOf(const FlightTeam& team);

}  // namespace lockstep::flight
