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
  // Prints the tables of one job to stderr and writes its file; of a second job one beside it.
  Status Store(results::store::Watched watched, int exit_code);

 private:
  results::store::Run run_;
  std::string path_;
  std::uint64_t began_ticks_;
  std::int64_t began_ns_;
  int stored_ = 0;
};

}  // namespace lockstep::watch::run

#endif  // LOCKSTEP_WATCH_RUN_REPORTER_H_
