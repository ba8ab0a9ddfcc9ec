// The dumps of all ranks of a job, and who belongs to its process groups.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/flight/dump.h"
#include "core/flight/files.h"

namespace lockstep::flight {

// A process group. Groups of one name and other ranks are other groups.
struct FlightTeam {
  std::string name;
  std::string description;
  std::vector<int> ranks;  // of the world, ascending
  bool told = false;       // otherwise its ranks are those whose dumps show it
  bool open = false;       // no dump tells how many ranks the job has: it may have more
  // A number means the same call in all dumps. Otherwise none of its calls are compared.
  bool aligned = true;
};

struct FlightJob {
  FlightTexts texts;
  std::vector<FlightDump> dumps;  // ascending ranks
  std::vector<FlightTeam> teams;
  std::vector<std::vector<std::int32_t>> team_of;  // by dump, by its group
  std::vector<int> missing;    // ranks that the dumps name, or that lie between theirs, without one
  std::int64_t newest_ns = 0;  // of all times in all dumps
  std::int64_t written_at_ns = 0;  // by the files' times: of the first dump that was written
  // "rank 0 tells of 4 ranks, rank 5 of 8" where dumps do not agree on the ranks of the job.
  std::string two_worlds;
  std::vector<std::string> notes;  // what a reader of the verdict should know, a line each

  const FlightTeam& TeamOf(std::size_t dump, const FlightCall& call) const {
    return teams[static_cast<std::size_t>(team_of[dump][static_cast<std::size_t>(call.group)])];
  }
};

// Reads the files of a job. kInvalidInput: one is no dump, or files with several prefixes are of
// several jobs.
Result<FlightJob> ReadFlightJob(const FlightFiles& files);

// From dumps in memory: fills in all that follows from them. kInvalidInput: two of one rank, none.
Result<FlightJob> FlightJobOf(FlightTexts texts, std::vector<FlightDump> dumps);

}  // namespace lockstep::flight
