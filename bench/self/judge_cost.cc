// A judgement of many ranks: must stay linear, and small beside the deadline it follows.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/verdict/judge.h"

namespace lockstep::bench::self {
namespace {

// All ranks in the same collective after a thousand events, beyond the deadline.
void JudgeStall(benchmark::State& state) {
  std::vector<verdict::RankEvidence> evidence(static_cast<std::size_t>(state.range(0)));
  int rank = 0;
  for (verdict::RankEvidence& one : evidence) {
    one.rank = rank++;
    one.seconds_silent = 10;
    for (std::uint64_t sequence = 0; sequence < 333; ++sequence) {
      for (const journal::EventKind kind :
           {journal::EventKind::kEnqueue, journal::EventKind::kStart, journal::EventKind::kEnd}) {
        if (sequence == 332 && kind == journal::EventKind::kEnd) break;
        journal::JournalEvent event{
            .sequence = sequence, .nth = static_cast<std::uint32_t>(sequence + 1), .kind = kind};
        one.journal.events.push_back(event);
      }
    }
  }
  for (auto _ : state) {
    const verdict::Judgement judgement = verdict::Judge(evidence, 5);
    if (judgement.findings.size() != 1) state.SkipWithError("not a stall");
  }
}
BENCHMARK(JudgeStall)->Arg(2)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep::bench::self
