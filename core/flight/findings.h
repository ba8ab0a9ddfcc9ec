// What is found in dumps beside what Judge finds, and Judge's findings in PyTorch's words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/flight/history.h"
#include "core/flight/job.h"
#include "core/verdict/outcome.h"
#include "core/verdict/wording.h"

namespace lockstep::flight {

using verdict::Cause;
using verdict::Finding;
using verdict::FormatRanks;
using verdict::Headline;
using verdict::Seconds;
using verdict::Verb;

// One dump, at a call of a team.
struct FlightStanding {
  std::size_t dump = 0;
  const FlightCall* call = nullptr;  // nullptr: it is not in the dump
  const FlightCall* last = nullptr;  // its newest call of that team before; or nullptr
  bool done = false;                 // with that call, as the histories say
};

// How every rank stands to one call of a process group: who entered it, who left it, who never
// came. Relies on dumps that are sorted by rank and calls that are in order.
class FlightView {
 public:
  FlightView(const FlightJob& job, const FlightHistory& history);

  // By dump, of the members of the team.
  std::vector<FlightStanding> At(std::int32_t team, std::uint64_t sequence) const;
  // The oldest call that is not done, or nullptr.
  const FlightCall* OpenOf(std::size_t dump) const { return open_[dump]; }
  const FlightCall* LastOf(std::size_t dump) const;
  // Done as the histories say: not given up.
  bool IsDone(std::size_t dump, const FlightCall& call) const;
  // Calls of other groups ended after it: its rank did not wait for it then, and need not now.
  bool WentOnBeside(std::size_t dump, const FlightCall& call) const;
  std::int32_t TeamIndex(std::size_t dump, const FlightCall& call) const;
  // The team whose collectives have that number, or -1.
  std::int32_t TeamOfCommunicator(std::uint16_t communicator, int rank) const;
  // Of a standing that has a call.
  const FlightTeam& TeamOf(const FlightStanding& standing) const {
    return job.TeamOf(standing.dump, *standing.call);
  }
  // The dump of a rank, or dumps.size().
  std::size_t DumpOf(int rank) const;
  // "all_reduce Float[256] at train.py:57 in step (call 4 of default_pg)"
  std::string Named(std::size_t dump, const FlightCall& call) const;

  const FlightJob& job;
  const FlightHistory& history;

 private:
  std::vector<const FlightCall*> open_;
};

// A suspicion of Judge (rank_busy, unknown, transport_stall, order_inversion) with the calls and
// the lines of the program; nothing for one that dumps cannot support.
std::optional<Finding> Reworded(const FlightView& view, const Finding& finding);

// rank_lost: suspected where the ranks with dumps wait in a call that all of them entered;
// otherwise unknown. Nothing when no dump is missing.
std::vector<Finding> FindRanksWithoutDump(const FlightView& view);

// Sends and receives that wait: rank_busy for the rank at the end of the chain, order_inversion for
// a ring, count_mismatch for sizes that differ. Suspected. Nothing where the chain ends in a
// collective: Judge tells that.
std::vector<Finding> FindWaitingMessages(const FlightView& view);

// Of calls that are all over: groups whose dumps do not end at one position, and messages of which
// only one side was called. A note each.
std::vector<std::string> TellUnevenEnds(const FlightView& view);

// unknown: calls on groups of which the dumps do not say who belongs to them.
std::vector<Finding> FindUnknownGroups(const FlightView& view);

}  // namespace lockstep::flight
