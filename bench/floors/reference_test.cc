// What the reference finds of this machine is plausible, and what it cannot measure is unknown.
#include "bench/floors/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/process_stat.h"

namespace lockstep::bench::floors {
namespace {

// A busy machine may need several looks, because each has a few milliseconds only.
TEST(Reference, LineAndHandoverOfTwoProcessors) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one processor";
  Reference reference({{cpus[0]}, {cpus[1]}}, 1 << 20);
  Crossing found;
  for (int look = 0; look < 2000; ++look) {
    found = reference.Measure();
    if (std::isfinite(found.line_round_trip_ns) && std::isfinite(found.handover_gbps[2])) break;
  }
  EXPECT_GT(found.line_round_trip_ns, 1);
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "a look at arrays takes longer than it may";
#endif
  EXPECT_GT(found.handover_gbps[0], 0);
  EXPECT_GT(found.handover_gbps[2], 0);
  EXPECT_TRUE(std::isnan(found.handover_gbps[3])) << "4 MiB is more than half of the message";
}

TEST(Reference, NothingIsFoundWhereNothingCanBeMeasured) {
  const std::vector<int> cpus = AllowedCpus();
  const std::vector<std::vector<std::vector<int>>> hopeless = {
      {}, {{cpus[0]}}, {{cpus[0]}, {cpus[0]}}, {{-1}, {-2}}};
  for (const std::vector<std::vector<int>>& ranks : hopeless) {
    Reference reference(ranks, 1 << 20);
    EXPECT_TRUE(std::isnan(reference.Measure().line_round_trip_ns)) << ranks.size();
  }
}

}  // namespace
}  // namespace lockstep::bench::floors
