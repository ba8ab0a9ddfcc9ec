// What the watched jobs of this user on this host do now. Only reads: files of watchers, segments
// and /proc. It takes about 20 ms where there is a job.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "watch/events/calls.h"
#include "watch/status/where.h"

namespace lockstep::watch::status {

struct CallNow {
  ThreadNow thread;
  double seconds = 0;  // in the call, or since the last one returned
  std::string site;    // "solver.c:31"; "": not known
};

struct RankNow {
  int rank = -1;  // -1: MPI_Init is not over, and the launcher says none
  pid_t pid = 0;
  std::string state;         // "running", "sleeping", "stopped", "ended"
  int exit_code = -1;        // of one that ended by exit(); -1: not known
  bool watched = true;       // false: it stopped to write events
  std::uint64_t events = 0;  // since it began; a call and its return are mostly one
  // A call that found nothing was made again and again while it was looked at.
  bool polls = false;
  events::Call poll_call = events::Call::kNone;  // the newest
  std::string poll_site;
  std::vector<CallNow> calls;  // threads in a call; where none is, the one that left one last
};

struct JobNow {
  std::string name;  // the launcher's, or MASTER_ADDR:MASTER_PORT
  int size = 0;      // ranks on all hosts; 0: not known yet
  pid_t watcher = 0;
  std::string command;
  std::vector<RankNow> ranks;  // of this host, ascending
};

// Jobs of which a rank is alive, by watcher and name.
std::vector<JobNow> LookAtJobs();

}  // namespace lockstep::watch::status
