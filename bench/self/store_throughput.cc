// Writing a run: 1e6 samples of two ranks. Goal: less than 100 ms, 40 ms wanted.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdint>
#include <string>

#include "core/base/random.h"
#include "core/base/temporary_folder.h"
#include "results/store/store.h"

namespace lockstep::bench::self {
namespace {

results::store::Run RunOf(std::int64_t iterations, int ranks) {
  results::store::Run run;
  run.id = "0badcafe";
  run.name = "self";
  run.started_at = "2026-01-01T00:00:00Z";
  results::store::CaseRecord record;
  record.name = "all_reduce/f32/8";
  record.backend = "null";
  record.device = "host";
  record.ranks = ranks;
  record.operations = {{.collective = collective::Collective::kAllReduce, .count = 2}};
  record.bytes = 8;
  record.samples.ranks = ranks;
  Random random(1);
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < iterations; ++i) {
    now += 1000;
    record.samples.round.push_back(static_cast<std::int32_t>(i / 20));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto entry = now + static_cast<std::int64_t>(random.Below(100));
      record.samples.entry_ns.push_back(entry);
      record.samples.exit_ns.push_back(entry + 500 + static_cast<std::int64_t>(random.Below(100)));
    }
  }
  run.cases.push_back(std::move(record));
  return run;
}

// Real time: most of it is the system's. In memory (/dev/shm) the library alone; in the temporary
// directory with the disk and its fsync.
void StoreWrite(benchmark::State& state, const std::string& parent) {
  const TemporaryFolder folder(parent, "lockstep-self");
  if (folder.path().empty()) {
    state.SkipWithError("cannot make a directory there");
    return;
  }
  const results::store::Run run = RunOf(state.range(0), 2);
  for (auto _ : state) {
    const Status written = results::store::WriteRun(run, folder.File("run.h5"));
    if (!written.ok()) {
      state.SkipWithError(written.message().c_str());
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 2);
}
BENCHMARK_CAPTURE(StoreWrite, memory, "/dev/shm")
    ->Arg(1'000'000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

const bool kStoreRegistered = [] {
  const char* parent = getenv("TMPDIR");
  benchmark::RegisterBenchmark("StoreWrite/disk", StoreWrite,
                               std::string(parent != nullptr ? parent : "/tmp"))
      ->Arg(1'000'000)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
  return true;
}();

void StoreRead(benchmark::State& state) {
  const TemporaryFolder folder("/dev/shm", "lockstep-self");
  const std::string path = folder.File("run.h5");
  if (const Status written = results::store::WriteRun(RunOf(state.range(0), 2), path);
      !written.ok()) {
    state.SkipWithError(written.message().c_str());
    return;
  }
  for (auto _ : state) {
    const auto run = results::store::ReadRun(path);
    if (!run.ok()) {
      state.SkipWithError(run.status().message().c_str());
      return;
    }
    benchmark::DoNotOptimize(run.value().cases.size());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0) * 2);
}
BENCHMARK(StoreRead)->Arg(1'000'000)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep::bench::self
