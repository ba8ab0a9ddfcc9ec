// `lockstep diagnose --flight-recorder DIR`: who hung a PyTorch job, by its own dumps.
#ifndef LOCKSTEP_CLI_DIAGNOSE_FLIGHT_H_
#define LOCKSTEP_CLI_DIAGNOSE_FLIGHT_H_

#include <string>

#include "core/base/status.h"
#include "core/verdict/trace.h"

namespace lockstep::cli::diagnose {

struct FlightOptions {
  std::string directory;  // empty: not asked for
  std::string prefix;     // of the files' names; empty: found out
  bool json = false;
  double deadline_seconds = 30;
  verdict::TraceLimits limits;
};

Result<ExitCode> DiagnoseFlightRecorder(const FlightOptions& options);

}  // namespace lockstep::cli::diagnose

#endif  // LOCKSTEP_CLI_DIAGNOSE_FLIGHT_H_
