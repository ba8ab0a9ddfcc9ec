#include "bench/plan/plan.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace lockstep::bench::plan {
namespace {

TEST(PlanTest, DefaultSweepDoublesFrom8BytesTo64MiB) {
  const Plan plan = ExpandPlan(BenchSpec{}, 2).value();
  ASSERT_EQ(plan.cases.size(), 24u);
  EXPECT_EQ(plan.cases.front().name, "all_reduce/f32/sum/8");
  EXPECT_EQ(plan.cases.front().operations[0].count, 2);
  EXPECT_EQ(BytesOf(plan.cases.back(), 2), 64 << 20);
  EXPECT_EQ(plan.send_buffer_bytes, 64 << 20);
}

TEST(PlanTest, StepAddsAndAxesMultiply) {
  BenchSpec spec;
  spec.begin_bytes = 1024;
  spec.end_bytes = 4096;
  spec.step_bytes = 1024;
  spec.types = {collective::DataType::kF16, collective::DataType::kF64};
  spec.reductions = {collective::Reduction::kSum, collective::Reduction::kMax};
  spec.in_place = {false, true};
  const Plan plan = ExpandPlan(spec, 4).value();
  EXPECT_EQ(plan.cases.size(), 4u * 2 * 2 * 2);
  std::set<std::string> names;
  for (const PlannedCase& planned : plan.cases) names.insert(planned.name);
  EXPECT_EQ(names.size(), plan.cases.size());
}

TEST(PlanTest, ModelGivesACaseABucketAndOneForTheSequence) {
  BenchSpec spec;
  spec.sweep = false;
  spec.sequences = {{"tiny", 25, {{100}, {2000}, {30, collective::DataType::kF64}}}};
  const Plan plan = ExpandPlan(spec, 2).value();
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_EQ(plan.cases[1].bucket, 1);
  EXPECT_EQ(plan.cases[3].name, "all_reduce/f32/sum/tiny/cap:25/sequence");
  EXPECT_EQ(plan.cases[3].operations.size(), 3u);
  EXPECT_EQ(BytesOf(plan.cases[3], 2), 4 * 2100 + 8 * 30);
  EXPECT_EQ(plan.send_buffer_bytes, 4096 + 8192 + 4096);
}

TEST(PlanTest, JsonRoundTripKeepsTheHash) {
  BenchSpec spec;
  spec.iterations = 100;
  spec.seed = 0xffffffffffffffffu;
  spec.sequences = {{"tiny", 0.5, {{100, collective::DataType::kBf16}, {2000}}}};
  const Plan plan = ExpandPlan(spec, 3).value();
  const Plan again = PlanFromJson(PlanToJson(plan)).value();
  EXPECT_EQ(HashOf(again), HashOf(plan));
  EXPECT_EQ(again.cases.size(), plan.cases.size());
  EXPECT_EQ(again.cases.back().operations, plan.cases.back().operations);
  spec.seed = 2;
  EXPECT_NE(HashOf(ExpandPlan(spec, 3).value()), HashOf(plan));
}

TEST(PlanTest, SelectKeepsTheCasesAndSizesTheBuffersAnew) {
  const Plan all = ExpandPlan(BenchSpec{}, 2).value();
  const Plan some = Select(all, {0, 3});
  ASSERT_EQ(some.cases.size(), 2u);
  EXPECT_EQ(some.cases[1].name, all.cases[3].name);
  EXPECT_EQ(some.send_buffer_bytes, 4096);
}

TEST(PlanTest, RefusesWhatCannotBeMeasured) {
  struct Row {
    std::function<void(BenchSpec&)> spoil;
    int world_size;
    const char* says;
  };
  const std::vector<Row> rows = {
      {[](BenchSpec& s) { s.begin_bytes = 1 << 20, s.end_bytes = 8; }, 2, "larger than -e"},
      {[](BenchSpec& s) { s.begin_bytes = 0; }, 2, "-b 0"},
      {[](BenchSpec& s) { s.factor = 1; }, 2, "-f 1"},
      {[](BenchSpec& s) { s.begin_bytes = 1, s.end_bytes = 2; }, 2, "one element"},
      {[](BenchSpec& s) { s.step_bytes = 4, s.end_bytes = 1 << 30; }, 2, "more than"},
      {[](BenchSpec& s) { s.root = 2; }, 2, "-r 2"},
      {[](BenchSpec& s) { s.iterations = 0; }, 2, "-n 0"},
      {[](BenchSpec& s) { s.warmup = -1; }, 2, "-w -1"},
      {[](BenchSpec& s) { s.precision = 0; }, 2, "--precision"},
      {[](BenchSpec& s) { s.drift = -0.1; }, 2, "--drift"},
      {[](BenchSpec& s) { s.deadline_seconds = 0; }, 2, "-T"},
      {[](BenchSpec&) {}, 1, "at least 2"},
  };
  for (const Row& row : rows) {
    BenchSpec spec;
    row.spoil(spec);
    const Result<Plan> plan = ExpandPlan(spec, row.world_size);
    ASSERT_FALSE(plan.ok()) << row.says;
    EXPECT_NE(plan.status().message().find(row.says), std::string::npos) << plan.status().message();
    EXPECT_EQ(ExitCodeOf(plan.status().code()), ExitCode::kUsage);
  }
}

TEST(PlanTest, OneRankHasNoCollectiveButNcclsCopy) {
  BenchSpec spec;
  spec.backend = "nccl";
  EXPECT_GT(ExpandPlan(spec, 1).value().cases.size(), 1u);
  for (const char* backend : {"mpi", "gloo", "null"}) {
    spec.backend = backend;
    EXPECT_FALSE(ExpandPlan(spec, 1).ok()) << backend;
  }
}

}  // namespace
}  // namespace lockstep::bench::plan
