// How every rank stands to one call of a process group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/flight/history.h"
#include "core/flight/job.h"

namespace lockstep::flight {

// One dump, at a call of a team.
struct FlightStanding {
  std::size_t dump = 0;
  const FlightCall* call = nullptr;  // nullptr: it is not in the dump
  const FlightCall* last = nullptr;  // its newest call of that team before; or nullptr
  bool done = false;                 // with that call, as the histories say
};

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

}  // namespace lockstep::flight
