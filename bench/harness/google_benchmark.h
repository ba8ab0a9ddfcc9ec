// Google Benchmark as registry and front end: which cases were asked for, and the results in its
// console, JSON and CSV forms. It runs in the coordinator, replays finished samples, and decides
// nothing: its own adaptation of iteration counts hangs, because ranks would decide by local
// clocks.
#pragma once

#include <string>
#include <vector>

#include "bench/plan/plan.h"
#include "core/base/status.h"
#include "results/store/run.h"

namespace lockstep::bench::harness {

struct BenchmarkSelection {
  std::vector<std::size_t> cases;  // indices of the plan that --benchmark_filter keeps, in order
  int repetitions = 1;             // --benchmark_repetitions
  bool listed = false;             // --benchmark_list_tests: printed, nothing is to be run
  bool writes_file = false;        // --benchmark_out is given
};

// Registers every case and asks Google Benchmark what its flags select. Errors: a flag that it does
// not know, a filter that matches nothing.
// A list goes to stdout when `prints`.
Result<BenchmarkSelection> SelectCases(const std::string& program, const plan::Plan& plan,
                                       const std::vector<std::string>& flags, bool prints);

// Whether --benchmark_out can be written; what it holds stays. kEnvironment: it can't.
Status CheckBenchmarkOut(const std::vector<std::string>& flags);

// Reports the run through Google Benchmark: to stdout in --benchmark_format (JSON unless given)
// when `display`, and to --benchmark_out. Every case is a benchmark with manual time, the maximum
// over ranks; real_time is the mean, and counters carry median, p99, maximum and bandwidths.
// kEnvironment: the file can't be written any more.
Status ReportWithGoogleBenchmark(const results::store::Run& run,
                                 const std::vector<std::string>& flags, bool display);

}  // namespace lockstep::bench::harness
