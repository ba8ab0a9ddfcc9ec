// The command line of a benchmark. Letters that nccl-tests has keep their meaning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/measure/kind.h"
#include "bench/plan/spec.h"
#include "core/base/status.h"

namespace lockstep::bench::harness {

struct BenchOptions {
  plan::BenchSpec spec;
  std::string output;  // "": a new file below results/runs
  measure::ReportFormat format = measure::ReportFormat::kTable;
  bool wide = false;  // the table has all columns
  bool progress = true;
  bool gpu_samples = true;
  std::vector<std::string> benchmark_flags;  // --benchmark_…: Google Benchmark's own
};

// What to do with a command line: run with these options, or print `text` and leave.
struct CommandLine {
  std::optional<BenchOptions> options;
  std::string text;  // help or version
};

// Errors are kInvalidInput and say the option, the value and the remedy.
Result<CommandLine> ParseCommandLine(measure::Kind& kind, int argc, const char* const* argv);

}  // namespace lockstep::bench::harness
