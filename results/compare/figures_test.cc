// Figures of literal runs whose loaders work in bursts: of four iterations one waits for all four
// batches, and the others find theirs.
#include "results/compare/figures.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "results/compare/compare.h"

namespace lockstep::results::compare {
namespace {

constexpr const char* kPlan =
    R"({{"backend": "mpi", "world_size": 2, "iterations": null,
         "cases": [{{"name": "sharded_load", "visit_iterations": {}}}]}})";

// A calibrating visit and three more. Rank 0 loads evenly, 100 ns a batch. Rank 1 needs `burst_ns`
// for four batches: in one iteration all of it, or evenly, too.
store::Run RunOf(double burst_ns, bool bursts, int visit_iterations = 4) {
  static int minute = 0;
  store::Run run;
  run.id = fmt::format("{:08x}", ++minute);
  run.name = "bench_sharding";
  run.started_at = fmt::format("2026-11-01T{:02}:{:02}:00Z", minute / 60, minute % 60);
  run.judgement.verdict = verdict::Verdict::kPass;
  run.plan_text = fmt::format(kPlan, visit_iterations);
  store::CaseRecord& record = run.cases.emplace_back();
  record.name = "sharded_load";
  record.backend = "mpi";
  record.ranks = record.samples.ranks = 2;
  record.judgement.verdict = verdict::Verdict::kPass;
  record.summary.median_ns = burst_ns / 4 + minute % 3;  // as bench_sharding has it
  store::Part load{"load_ns", "ns", "max", {}};
  std::int64_t now = 0;
  for (int i = 0; i < 16; ++i) {
    const double own = bursts ? (i % 4 == 0 ? burst_ns : 0) : burst_ns / 4;
    const double cold = i < 4 ? 50'000 : 0;  // of rank 0: the first visit only calibrates
    load.values.push_back(100 + cold);
    load.values.push_back(own);
    const auto took = static_cast<std::int64_t>(own + 100);
    for (int rank = 0; rank < 2; ++rank) {
      record.samples.entry_ns.push_back(now);
      record.samples.exit_ns.push_back(now + took);
    }
    now += took;
    record.samples.round.push_back(i / 4);
  }
  record.parts.push_back(std::move(load));
  return run;
}

std::vector<double> LoadExcess(const store::Run& run) {
  const Launch launch = FiguresOf(run, "run.h5");
  for (const RankExcess& excess : launch.cases.front().by_rank) {
    if (excess.what == "load_ns longer") return excess.ns;
  }
  return {};
}

TEST(FiguresTest, ARankThatLoadsInBurstsCountsByTheMeanOfItsVisits) {
  EXPECT_EQ(LoadExcess(RunOf(4000, true)), (std::vector<double>{-900, 900}));
  EXPECT_EQ(LoadExcess(RunOf(4000, false)), (std::vector<double>{-900, 900}));
  EXPECT_EQ(LoadExcess(RunOf(4000, true, 0)), (std::vector<double>{100, -100}))
      << "iterations that are alike count by their median, whatever few of them took";
}

TEST(FiguresTest, ARankThatBecameSlowInBurstsIsTheOneThatIsNamed) {
  std::vector<Launch> base, candidate;
  for (int i = 0; i < 8; ++i) {
    base.push_back(FiguresOf(RunOf(400, false), "base.h5"));
    candidate.push_back(FiguresOf(RunOf(4000, true), "candidate.h5"));
  }
  const LaunchComparison comparison = Compare(base, candidate, {});
  ASSERT_EQ(comparison.cases.size(), 1u);
  const std::vector<RankChange>& ranks = comparison.cases.front().slower_ranks;
  ASSERT_EQ(ranks.size(), 1u) << comparison.cases.front().why;
  EXPECT_EQ(ranks.front().rank, 1);
  EXPECT_EQ(ranks.front().what, "load_ns longer");
}

}  // namespace
}  // namespace lockstep::results::compare
