// `lockstep diagnose --ras HOST:PORT`: what NCCL's own RAS service lets one suspect of a running
// job.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/ras/status.h"
#include "core/ras/witness.h"

namespace lockstep::cli::diagnose {

struct RasOptions {
  // HOST:PORT, which is asked twice; or two files with answers, in order of time. Empty: not asked
  // for.
  std::vector<std::string> of;
  double seconds = 5;           // between the looks
  std::string format = "text";  // or "jsonl", "csv"
};

struct RasWitness {
  ras::JobStatus status;  // of the second look
  ras::Testimony testimony;
};

// Takes both looks.
Result<RasWitness> HearRas(const RasOptions& options);

nlohmann::ordered_json ToJson(const RasWitness& witness);

// Prints what RAS says, alone.
Result<ExitCode> DiagnoseRas(const RasOptions& options);

}  // namespace lockstep::cli::diagnose
