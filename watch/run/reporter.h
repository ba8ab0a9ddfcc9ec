// `lockstep watch --report`: what is noted while a launch is watched, and where it goes at the end.
#ifndef LOCKSTEP_WATCH_RUN_REPORTER_H_
#define LOCKSTEP_WATCH_RUN_REPORTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "results/store/run.h"
#include "watch/judge/finding.h"
#include "watch/report/record.h"

namespace lockstep::watch::run {

class Reporter {
 public:
  // `asked`: the result file (.h5), or a folder for a new one.
  Reporter(const std::vector<std::string>& command, const std::string& asked);

  // Before the launcher starts: can the file be written? An error names another way.
  Status Check() const;
  void Found(const judge::Finding& finding);
  // Ticks of events into nanoseconds since watching began: exact over the whole launch.
  report::Scale ScaleNow() const;
  // Writes the file of one job, over what was there; of the second job one beside it. At the end
  // prints its tables to stderr, too.
  Status Store(int job, results::store::Watched watched, int exit_code, bool at_end);

 private:
  results::store::Run run_;
  std::string path_;
  std::uint64_t began_ticks_;
  std::int64_t began_ns_;
};

}  // namespace lockstep::watch::run

#endif  // LOCKSTEP_WATCH_RUN_REPORTER_H_
