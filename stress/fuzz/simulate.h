// Runs a trial on core/comm/sim, and what was known of it at any moment.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/comm/sim/sim_world.h"
#include "core/verdict/judge.h"
#include "stress/fuzz/trial.h"

namespace lockstep::stress::fuzz {

struct FuzzRun {
  comm::sim::SimReport report;
  std::vector<journal::Journal> journals;  // one a rank
  std::int64_t fault_ns = -1;              // when the fault took effect; -1: it did not
  std::vector<std::string> wrong;  // of each rank: the first result that is not the reference's
};

FuzzRun Simulate(const FuzzTrial& trial);

// No moment: when nothing could happen any more, and everybody waited for longer than any deadline.
inline constexpr std::int64_t kAtTheEnd = std::numeric_limits<std::int64_t>::max();

// What agents would know at a virtual time, all that happened in that nanosecond included.
std::vector<verdict::RankEvidence> EvidenceAt(const FuzzTrial& trial, const FuzzRun& run,
                                              std::int64_t ns);

// What a judge is told of the program.
verdict::Setting SettingOf(const FuzzTrial& trial);

}  // namespace lockstep::stress::fuzz
