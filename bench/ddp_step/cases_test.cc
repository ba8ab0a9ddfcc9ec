#include <gtest/gtest.h>

#include <set>

#include "bench/plan/expand_steps.h"
#include "bench/plan/plan.h"

namespace lockstep::bench::plan {
namespace {

ddp::TensorInfo Tensor(const std::string& name, std::int64_t numel,
                       collective::DataType type = collective::DataType::kF32) {
  return {name, {numel}, type, numel};
}

PlannedModel Tiny() {
  PlannedModel model{"tiny", {}};
  model.tensors.params = {Tensor("a.weight", 1 << 19), Tensor("a.bias", 10),
                          Tensor("b.weight", 1 << 19), Tensor("b.bias", 10)};
  model.tensors.ready_order = {3, 2, 1, 0};
  model.tensors.buffers = {Tensor("mean", 10), Tensor("count", 1, collective::DataType::kI64)};
  return model;
}

BenchSpec SpecOf(const PlannedModel& model) {
  BenchSpec spec;
  spec.models = {model};
  return spec;
}

TEST(StepsTest, EveryCombinationOfTheAxesIsACaseAndTheDefaultIsTheFirst) {
  BenchSpec spec = SpecOf(Tiny());
  spec.ddp.bucket_caps_mb = {0, 1, 100};
  spec.ddp.broadcast_buffers = {true, false};
  spec.ddp.comm_hooks = {"none", "fp16"};
  spec.ddp.accumulate = {1, 4};
  const Plan plan = ExpandDdpPlan(spec, 2).value();
  EXPECT_TRUE(plan.paired);
  ASSERT_EQ(plan.cases.size(), 24u);
  EXPECT_EQ(plan.cases[0].name, "ddp_step/tiny/cap:default");
  std::set<std::string> names;
  for (const PlannedCase& planned : plan.cases) names.insert(planned.name);
  EXPECT_EQ(names.size(), 24u);
  EXPECT_TRUE(names.contains("ddp_step/tiny/cap:100/hook:fp16/no_buffers/accumulate:4"));
}

TEST(StepsTest, OperationsAreTheBucketsOfTheIteration) {
  BenchSpec spec = SpecOf(Tiny());
  spec.ddp.bucket_caps_mb = {0, 1};
  spec.ddp.first_iteration = {false, true};
  const Plan plan = ExpandDdpPlan(spec, 2).value();
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_EQ(plan.cases[0].operations.size(), 2u);  // 1 MiB and the rest
  EXPECT_EQ(plan.cases[0].operations[0].count, (1 << 19) + 10);
  EXPECT_EQ(plan.cases[2].name, "ddp_step/tiny/cap:default/first_iteration");
  EXPECT_EQ(plan.cases[2].operations.size(), 1u);
  EXPECT_EQ(BytesOf(plan.cases[2], 2), 4 * ((1 << 20) + 20));
}

TEST(StepsTest, StateIsBroadcastATypeAtATime) {
  BenchSpec spec = SpecOf(Tiny());
  spec.collective = collective::Collective::kBroadcast;
  spec.sweep = false;
  const Plan plan = ExpandPlan(spec, 2).value();
  ASSERT_EQ(plan.cases.size(), 2u);
  EXPECT_EQ(plan.cases[0].operations.size(), 2u);
  EXPECT_EQ(plan.cases[0].operations[0].count, (1 << 20) + 30);
  EXPECT_EQ(plan.cases[1].name, "state_broadcast/tiny/forward");
  EXPECT_EQ(plan.cases[1].operations[1].type, collective::DataType::kI64);
  EXPECT_FALSE(plan.paired);
  PlannedModel plain = Tiny();
  plain.tensors.buffers.clear();
  spec.models = {plain};
  EXPECT_EQ(ExpandPlan(spec, 2).value().cases.size(), 1u);
}

TEST(StepsTest, JsonKeepsStepsAndModels) {
  BenchSpec spec = SpecOf(Tiny());
  spec.ddp.bucket_caps_mb = {0, 0.1};
  spec.ddp.comm_hooks = {"none", "powersgd"};
  spec.ddp.compute_ms = 2.5;
  spec.ddp.compute = "matmul";
  const Plan plan = ExpandDdpPlan(spec, 2).value();
  const Plan again = PlanFromJson(PlanToJson(plan)).value();
  EXPECT_EQ(HashOf(again), HashOf(plan));
  EXPECT_TRUE(again.paired);
  ASSERT_EQ(again.cases.size(), 4u);
  EXPECT_EQ(again.cases[3].step, plan.cases[3].step);
  EXPECT_EQ(std::get<DdpStep>(again.cases[3].step).compute, "matmul");
  EXPECT_TRUE(again.cases[0].name.ends_with("/compute:matmul"));
  EXPECT_EQ(again.cases[3].parts, plan.cases[3].parts);
  EXPECT_EQ(again.cases[3].settings, plan.cases[3].settings);
  EXPECT_EQ(again.models[0].tensors.ready_order, plan.models[0].tensors.ready_order);
  EXPECT_EQ(again.models[0].tensors.buffers[1].type, collective::DataType::kI64);
  EXPECT_EQ(again.models[0].tensors.params[0].numel, 1 << 19);
}

TEST(StepsTest, MemoryIsWhatTheCasesShareAndWhatTheyHaveAlone) {
  BenchSpec spec = SpecOf(Tiny());
  const std::int64_t params = 4 * ((1 << 20) + 20);
  const std::int64_t one = ExpandDdpPlan(spec, 2).value().memory_bytes;
  EXPECT_GE(one, 3 * params);
  spec.ddp.bucket_caps_mb = {0, 1, 2, 3};
  EXPECT_EQ(ExpandDdpPlan(spec, 2).value().memory_bytes, one);
  spec.ddp.comm_hooks = {"none", "powersgd"};
  const Plan all = ExpandDdpPlan(spec, 2).value();
  EXPECT_GE(all.memory_bytes, one + 4 * params);
  EXPECT_EQ(Select(all, {0}).memory_bytes, one);
}

TEST(StepsTest, RefusesWhatCannotBeAStep) {
  BenchSpec spec = SpecOf(Tiny());
  spec.ddp.accumulate = {0};
  EXPECT_NE(ExpandDdpPlan(spec, 2).status().message().find("--accumulate 0"), std::string::npos);
  spec = SpecOf(Tiny());
  spec.ddp.compute_ms = -1;
  EXPECT_NE(ExpandDdpPlan(spec, 2).status().message().find("--compute-ms -1"), std::string::npos);
  EXPECT_FALSE(ExpandDdpPlan(SpecOf(Tiny()), 1).ok());
  spec = SpecOf(Tiny());
  spec.ddp.compute = "matmul";
  EXPECT_NE(ExpandDdpPlan(spec, 2).status().message().find("--compute-ms"), std::string::npos);
  spec.ddp.compute = "gemm";
  EXPECT_NE(ExpandDdpPlan(spec, 2).status().message().find("'gemm'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::bench::plan
