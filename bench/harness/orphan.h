// What a follower saves when the coordinator is lost: its own rank's samples and outcome.
#ifndef LOCKSTEP_BENCH_HARNESS_ORPHAN_H_
#define LOCKSTEP_BENCH_HARNESS_ORPHAN_H_

#include <string>

#include "bench/harness/bench_info.h"
#include "bench/harness/options.h"
#include "core/launch/context.h"
#include "core/launch/fleet.h"
#include "core/plan/plan.h"

namespace lockstep {

// For FleetOptions::on_orphaned: writes "<output>-rank<r>-partial.h5" (marked incomplete, other
// ranks' times absent, the coordinator's outcome unknown) and says so in one line on stderr.
class OrphanSaver {
 public:
  OrphanSaver(const BenchInfo& info, const BenchOptions& options, const LaunchContext& context,
              Plan plan);
  void operator()(const std::string& outbox_bytes, const RankEvidence& evidence) const;

 private:
  std::string name_;
  std::string output_;
  int rank_;
  Plan plan_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_ORPHAN_H_
