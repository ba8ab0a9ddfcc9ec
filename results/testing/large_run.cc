// large_run FILE CASES: writes a run with many cases, for tests of what programs take for one.
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/base/random.h"
#include "core/base/status.h"
#include "results/report/testing/literal_run.h"
#include "results/store/run.h"
#include "results/store/store.h"

namespace lockstep::results {
namespace {

constexpr int kSizes = 25;
constexpr std::uint64_t kSeed = 1;

// Sweeps of 25 sizes each, as bench_allreduce names them; every hundredth case failed.
store::Run LargeRun(int cases) {
  store::Run run = report::PassingRun();
  const store::CaseRecord pattern = run.cases[0];
  run.cases.clear();
  Random random(kSeed);
  for (int i = 0; i < cases; ++i) {
    store::CaseRecord& record = run.cases.emplace_back(pattern);
    const int sweep = i / kSizes;
    record.operations[0].count = std::int64_t{2} << (i % kSizes);
    record.operations[0].type = collective::AllDataTypes()[static_cast<std::size_t>(sweep) % 8];
    record.bytes = record.operations[0].count * collective::SizeOf(record.operations[0].type);
    record.name = fmt::format("all_reduce/{}/variant{}/{}",
                              collective::NameOf(record.operations[0].type), sweep, record.bytes);
    store::Summary& s = record.summary;
    s.median_ns = 1000 + static_cast<double>(record.bytes) / (1 + 0.01 * sweep);
    s.interval_low_ns = 0.96 * s.median_ns;
    s.interval_high_ns = 1.04 * s.median_ns;
    s.p99_ns = 2 * s.median_ns;
    s.floor_ns = 0.5 * s.median_ns;
    s.bus_gbps = s.algorithm_gbps = static_cast<double>(record.bytes) / s.median_ns;
    if (i % 100 == 99) {
      record.judgement = report::CorruptRun().cases[0].judgement;
      run.verdict = verdict::Verdict::kFail;
    }
    record.samples.ranks = record.ranks;
    const std::int64_t begin_ns = std::int64_t{1'000'000} * i;
    for (std::int64_t k = 0; k < 20; ++k) {
      record.samples.round.push_back(static_cast<std::int32_t>(k / 5));
      for (int rank = 0; rank < record.ranks; ++rank) {
        record.samples.entry_ns.push_back(begin_ns + 1000 * k);
        record.samples.exit_ns.push_back(begin_ns + 1000 * k + 500 +
                                         static_cast<std::int64_t>(random.Below(400)));
      }
    }
  }
  run.summary_line = fmt::format("{} cases measured on 2 ranks", cases);
  return run;
}

}  // namespace
}  // namespace lockstep::results

int main(int argc, char** argv) {
  const int cases = argc == 3 ? std::atoi(argv[2]) : 0;
  if (cases < 1) {
    std::fprintf(stderr, "large_run: give a file to write and a number of cases\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  const lockstep::Status status =
      lockstep::results::store::WriteRun(lockstep::results::LargeRun(cases), argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return static_cast<int>(lockstep::ExitCodeOf(status.code()));
}
