// Processes of this host that are ranks: forked once each, awaited together.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep::cli::trace_ddp {

// Of one rank, in its process.
class RankSeat {
 public:
  RankSeat(int written_fd, int here_fd) : written_fd_(written_fd), here_fd_(here_fd) {}
  // Kept whatever becomes of this process. Allocates nothing.
  void Write(std::string_view bytes) const;
  // The process stays, and its connections too, until the parent ends it because every rank came
  // here or is gone.
  [[noreturn]] void Stay() const;

 private:
  int written_fd_;
  int here_fd_;  // the parent waits until all have closed theirs
};

struct EndedRank {
  std::string written = {};  // by RankSeat::Write
  std::string errors = {};   // its standard error
  int exit_code = 0;
  int signal = 0;  // not 0: by which it was ended
  char state = 0;  // not 0: it had not ended; the letter of its state in /proc/PID/stat
};

// Forks once a rank, so no thread may run; `body` leaves without destructors. Exceptions of the
// body end its process with exit code 1 and their words among its errors. When no rank wrote
// anything for `patience_seconds`, those that neither stay nor ended are killed. By rank;
// kEnvironment when the processes cannot be made.
Result<std::vector<EndedRank>> RunRankProcesses(
    int ranks, double patience_seconds,
    const std::function<void(int rank, const RankSeat& seat)>& body);

}  // namespace lockstep::cli::trace_ddp
