// A run in the formats of other programs. Everything comes from the Run; a figure that its samples
// do not support is left out (null in JSON). Text that is no UTF-8 is replaced.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "results/store/run.h"

namespace lockstep::results::report::exports {

// Trace Event Format, which Perfetto and chrome://tracing open: a process a rank; threads for the
// program's phases, for the iterations with their parts, and for each communicator. Collectives
// carry sequence, bytes and purpose; faults, errors and deaths are instants. Microseconds since the
// run began. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
std::string FormatChromeTrace(const store::Run& run);

// Prometheus' text format 0.0.4 for node_exporter's textfile collector, and OpenMetrics 1.0.
// Seconds, bytes and ratios; each case is a label.
std::string FormatPrometheus(const store::Run& run);
std::string FormatOpenMetrics(const store::Run& run);

// JUnit XML: a test a case and one for the launch. `fail` is a failure, `unknown` an error: what is
// missing is not passed. The text of both: findings, ranks and wrong elements.
std::string FormatJunit(const store::Run& run);

// Google Benchmark's JSON, which its compare.py reads: real_time is the mean over iterations of the
// slowest rank's time, as in --format=gbench of the benchmarks.
std::string FormatGoogleBenchmark(const store::Run& run);
// A case's counters there, by name. What is not finite was not measured.
std::vector<std::pair<const char*, double>> GoogleBenchmarkCounters(const store::Summary& summary);

}  // namespace lockstep::results::report::exports
