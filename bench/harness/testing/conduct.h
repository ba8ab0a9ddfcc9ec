// Test material: a measurement of a Conductor over a list of events, and what came of it as text.
#ifndef LOCKSTEP_BENCH_HARNESS_TESTING_CONDUCT_H_
#define LOCKSTEP_BENCH_HARNESS_TESTING_CONDUCT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/protocol.h"
#include "core/base/status.h"
#include "core/launch/testing/fake_fleet.h"

namespace lockstep {

// Two ranks and two cases, all_reduce of 8 and of 16 bytes. -T is 5 s.
struct BenchScript {
  std::optional<std::int64_t> iterations = 4;  // none: rounds
  double time_budget_seconds = 10;
  int repetitions = 1;
  bool own_mpi = false;
  bool second_pass = false;
  std::vector<std::string> hosts = {};  // one a rank; none: all on one
  bool all_commands = false;            // also those of every measurement
};

// Commands, what was saved and when, then the measurement: a line each. Left out is how every
// measurement begins, up to the first round, and the journals that every lifetime leaves.
std::string Conduct(const BenchScript& script, FleetSteps steps);

// What workers say.
FleetStep Ready(int rank);
FleetStep RoundDone(int rank);
FleetStep Failed(int rank, const Status& status);
// `count` samples of a case, 10 us each, and the end of the batch, which cost 1 ms.
FleetStep Sampled(int rank, std::uint32_t case_index, int count, std::int64_t wrong = 0);
// Both ranks: ready; `count` samples of these cases, and done; the same when a round was ordered;
// gone.
FleetSteps BothReady();
FleetSteps Did(const std::vector<std::uint32_t>& cases, int count = 4);
FleetSteps BothDid(const std::vector<std::uint32_t>& cases, int count = 4);
FleetSteps BothLeft();

}  // namespace lockstep

#endif  // LOCKSTEP_BENCH_HARNESS_TESTING_CONDUCT_H_
