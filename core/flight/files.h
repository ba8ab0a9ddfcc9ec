// Which files of a folder are the dumps of one job, by their names alone.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace lockstep::flight {

// "nccl_trace_rank_12", "trace_node02_3.json": a prefix that may be empty, and a rank.
struct FlightFile {
  std::string path;
  std::string prefix;
  int rank = 0;
};

// The ranks that a host's part of the names has, ascending.
struct FlightHost {
  std::string name;
  std::vector<int> ranks;
};

// One job.
struct FlightFiles {
  std::string prefix;             // "nccl_trace_rank_*_", "*/nccl_trace_rank_": a host instead of *
  std::vector<FlightHost> hosts;  // by name; empty: all files have one prefix
  std::vector<FlightFile> files;  // ascending ranks
  std::vector<std::string> notes;
};

// Splits files by the jobs that they are of. Prefixes that differ in one part between underscores
// are hosts of one job if no rank stands in two of them, and different jobs if some rank stands in
// all of them. kInvalidInput: neither, or a prefix could belong to two jobs; `directory` begins the
// message.
Result<std::vector<FlightFiles>> GroupFlightFiles(std::vector<FlightFile> files,
                                                  const std::string& directory);

// The regular files of a directory whose names end in a rank, with or without ".json"; others are
// left alone. `prefix`: only those with that one, or where none has it, those that contain it; "":
// all. Of several prefixes those without a single dump are left alone, too. Where it has no such
// file, the dumps in its folders are of one job, of a host each. kInvalidInput: a rank stands in
// two of them.
Result<std::vector<FlightFiles>> FindFlightFiles(const std::string& directory,
                                                 const std::string& prefix);

}  // namespace lockstep::flight
