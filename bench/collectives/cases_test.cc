// The cases of sweeps, gradient buckets and state broadcasts, what is refused, and what is in the
// hash of a plan.
#include "bench/collectives/cases.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace lockstep::bench::collectives {
namespace {

ddp::TensorInfo Tensor(const std::string& name, std::int64_t numel,
                       collective::DataType type = collective::DataType::kF32) {
  return {name, {numel}, type, numel};
}

plan::PlannedModel Tiny() {
  plan::PlannedModel model{"tiny", {}};
  model.tensors.params = {Tensor("a.weight", 1 << 19), Tensor("a.bias", 10),
                          Tensor("b.weight", 1 << 19), Tensor("b.bias", 10)};
  model.tensors.ready_order = {3, 2, 1, 0};
  model.tensors.buffers = {Tensor("mean", 10), Tensor("count", 1, collective::DataType::kI64)};
  return model;
}

TEST(CollectiveCases, DefaultSweepDoublesFrom8BytesTo64MiB) {
  const plan::Plan plan = Expand({}, {}, 2).value();
  ASSERT_EQ(plan.cases.size(), 24u);
  EXPECT_EQ(plan.cases.front().name, "all_reduce/f32/sum/8");
  EXPECT_EQ(plan.cases.front().operations[0].count, 2);
  EXPECT_EQ(BytesOf(plan.cases.back(), 2), 64 << 20);
  EXPECT_EQ(plan.send_buffer_bytes, 64 << 20);
}

TEST(CollectiveCases, StepAddsAndAxesMultiply) {
  plan::BenchSpec spec;
  Axes axes;
  axes.sizes.begin_bytes = 1024;
  axes.sizes.end_bytes = 4096;
  axes.sizes.step_bytes = 1024;
  axes.types = {collective::DataType::kF16, collective::DataType::kF64};
  axes.reductions = {collective::Reduction::kSum, collective::Reduction::kMax};
  axes.in_place = {false, true};
  const plan::Plan plan = Expand(spec, axes, 4).value();
  EXPECT_EQ(plan.cases.size(), 4u * 2 * 2 * 2);
  std::set<std::string> names;
  for (const plan::PlannedCase& planned : plan.cases) names.insert(planned.name);
  EXPECT_EQ(names.size(), plan.cases.size());
}

TEST(CollectiveCases, AFactorThatMakesNoSizesIsRefused) {
  Axes axes;
  axes.sizes = {.begin_bytes = 8, .end_bytes = 1 << 20, .factor = 1.0000000000000002};
  const Result<plan::Plan> refused = Expand({}, axes, 2);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("-f 1.0000000000000002: "), std::string::npos);
  axes.sizes.end_bytes = axes.sizes.begin_bytes;
  EXPECT_EQ(Expand({}, axes, 2).value().cases.size(), 1u) << "one size needs no factor";
}

// From there on a double holds even numbers only.
TEST(CollectiveCases, StepsAreWholeAlsoWhereSizesAreLarge) {
  constexpr std::int64_t kBegin = std::int64_t{1} << 53;
  Axes axes;
  axes.sizes = {.begin_bytes = kBegin, .end_bytes = kBegin + 4, .step_bytes = 1};
  axes.types = {collective::DataType::kU8};
  const plan::Plan plan = Expand({}, axes, 2).value();
  ASSERT_EQ(plan.cases.size(), 5u);
  EXPECT_EQ(plan::BytesOf(plan.cases[1], 2), kBegin + 1);
}

TEST(CollectiveCases, ModelGivesACaseABucketAndOneForTheSequence) {
  plan::BenchSpec spec;
  Axes axes;
  axes.sweep = false;
  axes.sequences = {{"tiny", 25, {{100}, {2000}, {30, collective::DataType::kF64}}}};
  const plan::Plan plan = Expand(spec, axes, 2).value();
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_EQ(plan.cases[1].bucket, 1);
  EXPECT_EQ(plan.cases[3].name, "all_reduce/f32/sum/tiny/cap:25/sequence");
  EXPECT_EQ(plan.cases[3].operations.size(), 3u);
  EXPECT_EQ(BytesOf(plan.cases[3], 2), 4 * 2100 + 8 * 30);
  EXPECT_EQ(plan.send_buffer_bytes, 4096 + 8192 + 4096);
}

TEST(CollectiveCases, JsonRoundTripKeepsTheHash) {
  plan::BenchSpec spec;
  Axes axes;
  spec.iterations = 100;
  spec.seed = 0xffffffffffffffffu;
  axes.sequences = {{"tiny", 0.5, {{100, collective::DataType::kBf16}, {2000}}}};
  const plan::Plan plan = Expand(spec, axes, 3).value();
  const plan::Plan again = plan::PlanFromJson(plan::PlanToJson(plan)).value();
  EXPECT_EQ(HashOf(again), HashOf(plan));
  EXPECT_EQ(again.cases.size(), plan.cases.size());
  EXPECT_EQ(again.cases.back().operations, plan.cases.back().operations);
  spec.seed = 2;
  EXPECT_NE(HashOf(Expand(spec, axes, 3).value()), HashOf(plan));
}

TEST(CollectiveCases, WhatNcclIsToldIsInTheHash) {
  std::set<std::string> hashes;
  const auto add = [&](const std::function<void(comm::nccl::NcclChoices&)>& choose) {
    plan::BenchSpec spec;
    choose(spec.nccl);
    const plan::Plan plan = Expand(spec, {}, 2).value();
    EXPECT_EQ(plan::PlanFromJson(plan::PlanToJson(plan)).value().nccl, spec.nccl);
    hashes.insert(HashOf(plan));
  };
  add([](comm::nccl::NcclChoices&) {});
  add([](comm::nccl::NcclChoices& nccl) { nccl.library = "/x/libnccl.so.2"; });
  add([](comm::nccl::NcclChoices& nccl) { nccl.ranks_per_gpu = 2; });
  add([](comm::nccl::NcclChoices& nccl) { nccl.registers = true; });
  add([](comm::nccl::NcclChoices& nccl) { nccl.graphs = true; });
  add([](comm::nccl::NcclChoices& nccl) { nccl.marks = false; });
  EXPECT_EQ(hashes.size(), 6u);
}

TEST(CollectiveCases, SelectKeepsTheCasesAndSizesTheBuffersAnew) {
  const plan::Plan all = Expand({}, {}, 2).value();
  const plan::Plan some = plan::Select(all, {0, 3});
  ASSERT_EQ(some.cases.size(), 2u);
  EXPECT_EQ(some.cases[1].name, all.cases[3].name);
  EXPECT_EQ(some.send_buffer_bytes, 4096);
}

struct Asked {
  plan::BenchSpec spec;
  Axes axes;
};

TEST(CollectiveCases, RefusesWhatCannotBeMeasured) {
  struct Row {
    std::function<void(Asked&)> spoil;
    int world_size;
    const char* says;
  };
  const std::vector<Row> rows = {
      {[](Asked& s) { s.axes.sizes.begin_bytes = 1 << 20, s.axes.sizes.end_bytes = 8; }, 2,
       "larger than -e"},
      {[](Asked& s) { s.axes.sizes.begin_bytes = 0; }, 2, "-b 0"},
      {[](Asked& s) { s.axes.sizes.factor = 1; }, 2, "-f 1"},
      {[](Asked& s) { s.axes.sizes.begin_bytes = 1, s.axes.sizes.end_bytes = 2; }, 2,
       "one element"},
      {[](Asked& s) { s.axes.sizes.step_bytes = 4, s.axes.sizes.end_bytes = 1 << 30; }, 2,
       "more than"},
      {[](Asked& s) { s.axes.root = 2; }, 2, "-r 2"},
      {[](Asked& s) { s.spec.iterations = 0; }, 2, "-n 0"},
      {[](Asked& s) { s.spec.warmup = -1; }, 2, "-w -1"},
      {[](Asked& s) { s.spec.precision = 0; }, 2, "--precision"},
      {[](Asked& s) { s.spec.drift = -0.1; }, 2, "--drift"},
      {[](Asked& s) { s.spec.deadline_seconds = 0; }, 2, "-T"},
      {[](Asked&) {}, 1, "at least 2"},
  };
  for (const Row& row : rows) {
    Asked asked;
    row.spoil(asked);
    const Result<plan::Plan> plan = Expand(asked.spec, asked.axes, row.world_size);
    ASSERT_FALSE(plan.ok()) << row.says;
    EXPECT_NE(plan.status().message().find(row.says), std::string::npos) << plan.status().message();
    EXPECT_EQ(ExitCodeOf(plan.status().code()), ExitCode::kUsage);
  }
}

TEST(CollectiveCases, StateIsBroadcastATypeAtATime) {
  plan::BenchSpec spec;
  Axes axes;
  axes.models = {Tiny()};
  axes.collective = collective::Collective::kBroadcast;
  axes.sweep = false;
  const plan::Plan plan = Expand(spec, axes, 2).value();
  ASSERT_EQ(plan.cases.size(), 2u);
  EXPECT_EQ(plan.cases[0].operations.size(), 2u);
  EXPECT_EQ(plan.cases[0].operations[0].count, (1 << 20) + 30);
  EXPECT_EQ(plan.cases[1].name, "state_broadcast/tiny/forward");
  EXPECT_EQ(plan.cases[1].operations[1].type, collective::DataType::kI64);
  EXPECT_FALSE(plan.paired);
  plan::PlannedModel plain = Tiny();
  plain.tensors.buffers.clear();
  axes.models = {plain};
  EXPECT_EQ(Expand(spec, axes, 2).value().cases.size(), 1u);
}

TEST(CollectiveCases, OneRankHasNoCollectiveButNcclsCopy) {
  plan::BenchSpec spec;
  Axes axes;
  spec.backend = "nccl";
  EXPECT_GT(Expand(spec, axes, 1).value().cases.size(), 1u);
  for (const char* backend : {"mpi", "gloo", "null"}) {
    spec.backend = backend;
    EXPECT_FALSE(Expand(spec, axes, 1).ok()) << backend;
  }
}

// As nccl-tests count: of what is gathered or scattered, the whole.
TEST(CasesTest, SizesOfShardedCollectivesAreThoseOfAllRanks) {
  Axes axes;
  axes.sizes.begin_bytes = 8;
  axes.sizes.end_bytes = 100;
  for (const auto collective :
       {collective::Collective::kAllGather, collective::Collective::kReduceScatter}) {
    axes.collective = collective;
    const plan::Plan plan = Expand({}, axes, 3).value();
    ASSERT_EQ(plan.cases.size(), 3u);  // 8 bytes are less than an element a rank
    EXPECT_EQ(plan.cases[2].operations[0].count, 5);
    EXPECT_EQ(plan.cases[2].name.substr(plan.cases[2].name.rfind('/')), "/60");
  }
}

}  // namespace
}  // namespace lockstep::bench::collectives
