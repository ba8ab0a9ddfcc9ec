// Exact checking against what the memory allows: a plain read and a plain copy of the same bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/collective/collective.h"
#include "core/collective/pattern.h"
#include "core/collective/reference.h"

namespace lockstep::bench::self {
namespace {

constexpr int kRanks = 2;
constexpr std::uint64_t kSeed = 7;
constexpr std::int64_t kInCache = 64 << 10;
constexpr std::int64_t kInMemory = 32 << 20;

using Words = std::vector<std::uint64_t>;

void SetBytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void PlainRead(benchmark::State& state) {
  const Words data(static_cast<std::size_t>(state.range(0)) / 8, 1);
  for (auto _ : state) {
    std::uint64_t sums[8] = {};  // independent, so that the additions do not wait for each other
    for (std::size_t i = 0; i + 8 <= data.size(); i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += data[i + lane];
    }
    benchmark::DoNotOptimize(sums);
  }
  SetBytes(state);
}

void PlainCopy(benchmark::State& state) {
  const Words from(static_cast<std::size_t>(state.range(0)) / 8, 1);
  Words to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size() * 8);
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

collective::Operation AllReduceOf(std::int64_t bytes, collective::DataType type) {
  return {.collective = collective::Collective::kAllReduce,
          .type = type,
          .count = bytes / collective::SizeOf(type)};
}

// The right result of an all-reduce of the pattern.
Words RightResult(const collective::Pattern& pattern, std::int64_t bytes) {
  std::vector<Words> sends(kRanks, Words(static_cast<std::size_t>(bytes) / 8));
  std::vector<const void*> pointers;
  const std::int64_t count = pattern.operation().count;
  for (int rank = 0; rank < kRanks; ++rank) {
    pattern.FillSend(sends[static_cast<std::size_t>(rank)].data(), 0, count, rank, 1);
    pointers.push_back(sends[static_cast<std::size_t>(rank)].data());
  }
  Words result(sends[0].size());
  collective::ReferenceResult(pattern.operation(), kRanks, pointers, 0, result.data());
  return result;
}

void CheckRecv(benchmark::State& state, collective::DataType type) {
  const collective::Pattern pattern(kSeed, AllReduceOf(state.range(0), type), kRanks);
  const Words result = RightResult(pattern, state.range(0));
  std::int64_t wrong = 0;
  for (auto _ : state) {
    collective::CheckReport report;
    pattern.CheckRecv(result.data(), 0, pattern.operation().count, 0, 1, report);
    wrong += report.wrong;
  }
  if (wrong != 0) state.SkipWithError("the check called a right result wrong");
  SetBytes(state);
}

void FillSend(benchmark::State& state, collective::DataType type) {
  const collective::Pattern pattern(kSeed, AllReduceOf(state.range(0), type), kRanks);
  Words data(static_cast<std::size_t>(state.range(0)) / 8);
  for (auto _ : state) {
    pattern.FillSend(data.data(), 0, pattern.operation().count, 0, 1);
    benchmark::ClobberMemory();
  }
  SetBytes(state);
}

BENCHMARK(PlainRead)->Arg(kInCache)->Arg(kInMemory);
BENCHMARK(PlainCopy)->Arg(kInCache)->Arg(kInMemory);

const bool kCheckRegistered = [] {
  for (const collective::DataType type : collective::AllDataTypes()) {
    const std::string name(collective::NameOf(type));
    benchmark::RegisterBenchmark(("CheckRecv/" + name).c_str(), CheckRecv, type)
        ->Arg(kInCache)
        ->Arg(kInMemory);
    benchmark::RegisterBenchmark(("FillSend/" + name).c_str(), FillSend, type)->Arg(kInMemory);
  }
  return true;
}();

}  // namespace
}  // namespace lockstep::bench::self
