// Test material: a measurement of a Scheduler over a list of events, and what came of it as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/protocol.h"
#include "core/base/status.h"
#include "core/coordinator/testing/fake_coordinator.h"
#include "core/verdict/testing/history.h"

namespace lockstep::bench::harness {

// Two ranks; the cases are all_reduce of 8, 16 ... bytes. -T is 5 s.
struct BenchScript {
  int cases = 2;
  std::optional<std::int64_t> iterations = 4;  // none: rounds
  double time_budget_seconds = 10;
  int repetitions = 1;
  bool own_mpi = false;
  bool second_pass = false;
  std::vector<std::string> hosts = {};  // one a rank; none: all on one
  bool all_commands = false;            // also those of every measurement
  bool replicated = false;              // also what a successor would know
};

// Commands, what was saved and when, then the measurement: a line each. Left out is how every
// measurement begins, up to the first round, and the journals that every lifetime leaves.
std::string Schedule(const BenchScript& script, coordinator::Script steps);

// What workers say.
coordinator::ScriptStep Ready(int rank);
coordinator::ScriptStep RoundDone(int rank);
coordinator::ScriptStep Failed(int rank, const Status& status);
// `count` samples of a case, 10 us each, and the end of the batch, which cost 1 ms.
coordinator::ScriptStep Sampled(int rank, std::uint32_t case_index, int count,
                                std::int64_t wrong = 0);
// Both ranks: ready; `count` samples of these cases, and done; the same when a round was ordered;
// gone.
coordinator::Script BothReady();
coordinator::Script Did(const std::vector<std::uint32_t>& cases, int count = 4);
coordinator::Script BothDid(const std::vector<std::uint32_t>& cases, int count = 4);
coordinator::Script BothLeft();

// A rank that connects, and one that is in the all-reduce of a case.
verdict::History Connects(int rank);
verdict::History Measures(std::uint32_t case_index, int rank);

}  // namespace lockstep::bench::harness
