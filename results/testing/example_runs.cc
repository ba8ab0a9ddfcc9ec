// example_runs DIRECTORY: writes run files for tests.
#include <cstdio>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "results/report/testing/literal_run.h"
#include "results/store/run.h"
#include "results/store/store.h"

namespace lockstep::results {
namespace {

// Samples for the case, so that the file has some of everything.
store::Run WithSamples(store::Run run) {
  for (store::CaseRecord& record : run.cases) {
    record.samples.ranks = record.ranks;
    if (record.summary.iterations == 0) continue;
    for (std::int64_t i = 0; i < 5; ++i) {
      record.samples.round.push_back(static_cast<std::int32_t>(i / 2));
      for (int rank = 0; rank < record.ranks; ++rank) {
        record.samples.entry_ns.push_back(1000 * i + rank);
        record.samples.exit_ns.push_back(1000 * i + 800 - rank);
        for (store::Part& part : record.parts) part.values.push_back(part.median + rank);
      }
    }
  }
  return run;
}

// What only machines with a GPU have.
store::Run WithGpu(store::Run run) {
  journal::GpuSample sample;
  sample.ticks = 2000;
  sample.utilization_percent = 100;
  run.gpu_samples = {{0, "00000000:3B:00.0", sample}};
  run.logs = {{1, 0, "/tmp/nccl.log", 40, 0, "host:1 [0] NCCL WARN something\n"}};
  return run;
}

// What the judge of a run that failed knew.
store::Run WithEvidence(store::Run run) {
  store::EvidenceRecord record{.case_index = 1, .lifetime = 0, .deadline_seconds = 5, .known = {}};
  record.known.rank = 1;
  record.known.state = verdict::ProcessState::kSignalled;
  record.known.signal = 9;
  record.known.sockets = {{.local = "10.0.0.1:4000", .remote = "10.0.0.2:4000", .written = 8}};
  record.last_event = 2;
  run.evidence = {record};
  return run;
}

int Main(const std::string& directory) {
  for (const auto& [name, run] :
       {std::pair("passing", report::PassingRun()),
        std::pair("failing", WithEvidence(WithGpu(report::FailingRun()))),
        std::pair("corrupt", report::CorruptRun()), std::pair("steps", report::StepsRun()),
        std::pair("links", report::LinksRun()), std::pair("interrupted", report::InterruptedRun()),
        std::pair("hanging", report::HangingRun()), std::pair("watched", report::WatchedRun())}) {
    const Status status = store::WriteRun(WithSamples(run), directory + "/" + name + ".h5");
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return static_cast<int>(ExitCodeOf(status.code()));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::results

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "example_runs: name a directory to write to\n");
    return static_cast<int>(lockstep::ExitCode::kUsage);
  }
  return lockstep::results::Main(argv[1]);
}
