// What a measurement pays besides the collective: clocks, the journal, the recorded decorator.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/comm/null/null_communicator.h"
#include "core/comm/recorded.h"
#include "core/device/host/host_device.h"
#include "core/journal/journal.h"

namespace lockstep::bench::self {
namespace {

constexpr std::size_t kCapacity = 1 << 14;  // events: a megabyte, as a worker has

class Memory {
 public:
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  std::vector<journal::JournalEvent> lines_{journal::JournalBytes(kCapacity) /
                                            sizeof(journal::JournalEvent)};
};

void NowTicks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(lockstep::NowTicks());
}
BENCHMARK(NowTicks);

void MonotonicNs(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(lockstep::MonotonicNs());
}
BENCHMARK(MonotonicNs);

// Goal: less than 40 ns with the stamp.
void JournalAppend(benchmark::State& state) {
  Memory memory;
  journal::JournalWriter writer = journal::JournalWriter::Create(memory.bytes(), kCapacity);
  std::uint64_t sequence = 0;
  for (auto _ : state) {
    journal::JournalEvent event{.sequence = ++sequence, .kind = journal::EventKind::kStart};
    if (state.range(0) == 0) event.ticks = sequence;
    benchmark::DoNotOptimize(writer.Append(event));
  }
}
BENCHMARK(JournalAppend)->ArgName("stamp")->Arg(1)->Arg(0);

void JournalLast(benchmark::State& state) {
  Memory memory;
  journal::JournalWriter writer = journal::JournalWriter::Create(memory.bytes(), kCapacity);
  const journal::JournalReader reader(memory.bytes(), kCapacity);
  writer.Idle();
  for (auto _ : state) benchmark::DoNotOptimize(reader.Last());
}
BENCHMARK(JournalLast);

struct NullWorld {
  NullWorld() {
    auto connected = comm::null::ConnectNull(/*rank=*/0, /*size=*/2);
    LOCKSTEP_CHECK(connected.ok(), connected.status().message());
    communicator = std::move(connected).value();
    stream = device.NewInlineStream();
  }
  device::host::HostDevice device;
  std::unique_ptr<device::Stream> stream;
  std::unique_ptr<comm::Communicator> communicator;
  Memory memory;
  journal::JournalWriter writer = journal::JournalWriter::Create(memory.bytes(), kCapacity);
};

const collective::Operation kOperation = {.collective = collective::Collective::kAllReduce,
                                          .count = 2};

void EnqueueAll(benchmark::State& state, comm::Communicator& communicator, device::Stream& stream) {
  float send[2] = {1, 2}, recv[2] = {};
  for (auto _ : state) {
    if (!communicator.Enqueue(kOperation, {send, recv}, stream).ok()) {
      state.SkipWithError("Enqueue failed");
      return;
    }
  }
}

// The backend that does nothing on an inline stream, without and with the decorator: the difference
// is what recording adds to an iteration; what lies between its two stamps is less, and subtracted
// from nobody's time.
void EnqueueOnNull(benchmark::State& state) {
  NullWorld world;
  EnqueueAll(state, *world.communicator, *world.stream);
}
BENCHMARK(EnqueueOnNull);

void EnqueueOnRecordedNull(benchmark::State& state) {
  NullWorld world;
  comm::RecordedCommunicator recorded(std::move(world.communicator), world.writer, 0);
  double between_stamps = 0;
  float send[2] = {1, 2}, recv[2] = {};
  for (auto _ : state) {
    if (!recorded.Enqueue(kOperation, {send, recv}, *world.stream).ok()) {
      state.SkipWithError("Enqueue failed");
      return;
    }
    between_stamps +=
        static_cast<double>(recorded.last_interval().exit - recorded.last_interval().entry);
  }
  // The smallest sample that a benchmark can report.
  const double ns_per_tick = CalibrateTicks().ns_per_tick;
  state.counters["sample_ns"] =
      benchmark::Counter(between_stamps * ns_per_tick, benchmark::Counter::kAvgIterations);
}
BENCHMARK(EnqueueOnRecordedNull);

}  // namespace
}  // namespace lockstep::bench::self

BENCHMARK_MAIN();
