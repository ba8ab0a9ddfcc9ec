// `lockstep diagnose --flight-recorder DIR`: who hung a PyTorch job, by its own dumps.
#pragma once

#include <optional>
#include <string>

#include "cli/diagnose/ras.h"
#include "core/base/status.h"
#include "core/verdict/trace.h"

namespace lockstep::cli::diagnose {

struct FlightOptions {
  std::string directory;                   // empty: not asked for
  std::string prefix;                      // of the files' names; empty: found out
  std::string format = "text";             // or "jsonl", "csv"
  std::optional<double> deadline_seconds;  // none: as flight::DiagnoseFlight says
  verdict::TraceLimits limits;
};

// `ras`: what NCCL's RAS says of the same job, or nullptr. Then the dumps must be of one job.
Result<ExitCode> DiagnoseFlightRecorder(const FlightOptions& options, const RasWitness* ras);

}  // namespace lockstep::cli::diagnose
