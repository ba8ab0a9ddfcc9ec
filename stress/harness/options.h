// The command line of the stress runner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/sim/rules.h"
#include "stress/run/case_options.h"

namespace lockstep::stress::harness {

struct StressOptions : run::CaseOptions {
  std::vector<std::string> scenarios;  // names with wildcards, or paths of files
  comm::sim::SimRules sim_rules = comm::sim::SimRules::kNccl;  // of backend sim
  std::optional<int> ranks;  // of backend sim; none: those of the file
  std::uint64_t seed = 1;
  std::int64_t repeat = 1;            // every scenario with seeds seed, seed + 1 …
  std::string verdicts;               // a file; empty: none
  std::string output;                 // the result file; empty: a new one below results/runs
  bool allow_network_faults = false;  // also of interfaces that are not of test hosts
  bool list = false;
  bool list_faults = false;
  bool gpu_samples = true;
  bool progress = true;
};

struct StressCommandLine {
  std::optional<StressOptions> options;  // none: print the text
  std::string text;
};

Result<StressCommandLine> ParseStressCommandLine(int argc, const char* const* argv);

// Writes the text of --verdicts; nothing where it was not given.
Status WriteVerdicts(const std::string& path, const std::string& text);

}  // namespace lockstep::stress::harness
