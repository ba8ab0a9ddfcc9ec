// The result file of a watched launch: what is noted while it runs, and where that goes.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/verdict/outcome.h"
#include "results/store/run.h"
#include "watch/judge/finding.h"
#include "watch/report/record.h"
#include "watch/run/watch.h"

namespace lockstep::watch::run {

class Reporter {
 public:
  explicit Reporter(const WatchOptions& options);

  bool counts_waits() const { return counts_waits_; }
  bool named() const { return named_; }
  // Written in any case; otherwise only where something is found.
  bool wanted() const { return named_ || counts_waits_; }
  bool found() const { return !run_.judgement.findings.empty() || !suspected_.empty(); }
  // Before the launcher starts: can the file be written? An error names another way. A file that
  // nobody wanted goes to another folder.
  Status Check();
  void Found(const judge::Finding& finding);
  bool only_suspected() const { return found() && run_.judgement.findings.empty(); }
  // Of a hang.
  void Found(verdict::Finding finding);
  // Ranks that stand, as it looks now: to be told after the finding.
  void Hung(std::vector<verdict::RankOutcome> ranks);
  // Ticks of events into nanoseconds since watching began: exact over the whole launch.
  report::Scale ScaleNow() const;
  // Writes the file of one job, over what was there; of the second job one beside it. Says once
  // where it is. At the end prints its tables to stderr, too.
  // `judged`: something was watched, and all of it. A hang that was only suspected was none where
  // the launch ended well.
  Status Store(int job, std::optional<results::store::Watched> watched, int exit_code, bool at_end,
               bool judged);

 private:
  results::store::Run run_;
  std::vector<verdict::Finding> suspected_;  // hangs, not proved
  bool counts_waits_;
  bool named_;
  std::string path_;
  std::set<int> said_;  // jobs
  std::uint64_t began_ticks_;
  std::int64_t began_ns_;
};

}  // namespace lockstep::watch::run
