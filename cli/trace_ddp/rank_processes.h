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
  RankSeat(int written_fd, int here_fd, int leave_fd)
      : written_fd_(written_fd), here_fd_(here_fd), leave_fd_(leave_fd) {}
  // Kept whatever becomes of this process.
  void Write(std::string_view bytes) const;
  // Returns when every rank came here or is gone. Once.
  void AwaitAll() const;

 private:
  int written_fd_;
  int here_fd_;   // the parent reads until all have closed theirs
  int leave_fd_;  // reads nothing until the parent closes its end
};

struct EndedRank {
  std::string written;  // by RankSeat::Write
  std::string errors;   // its standard error
  int exit_code = 0;
  int signal = 0;  // not 0: by which it was ended
};

// Forks once a rank, so no thread may run; `body` leaves without destructors. Exceptions of the
// body end its process with exit code 1 and their words among its errors. By rank; kEnvironment
// when the processes cannot be made.
Result<std::vector<EndedRank>> RunRankProcesses(
    int ranks, const std::function<void(int rank, const RankSeat& seat)>& body);

}  // namespace lockstep::cli::trace_ddp
