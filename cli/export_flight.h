// `lockstep export RUN.h5 --format=flight-recorder --output-folder=DIR`.
#ifndef LOCKSTEP_CLI_EXPORT_FLIGHT_H_
#define LOCKSTEP_CLI_EXPORT_FLIGHT_H_

#include <string>

#include "core/base/status.h"
#include "results/store/run.h"

namespace lockstep::cli {

// Writes DIR/nccl_trace_rank_<rank>, the dumps of one lifetime of the workers; several lifetimes
// get a directory each, DIR/lifetime_<n>. DIR is made, or empty: dumps of two runs do not mix.
Status ExportFlightRecorder(const results::store::Run& run, const std::string& path,
                            const std::string& directory);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_CLI_EXPORT_FLIGHT_H_
