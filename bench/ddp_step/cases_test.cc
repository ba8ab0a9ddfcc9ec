// The cases of training steps, their buckets and memory, what is refused, and what is in the hash.
#include "bench/ddp_step/cases.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/plan/step_fields.h"

namespace lockstep::bench::ddp_step {
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

Axes AxesOf(const plan::PlannedModel& model) {
  Axes axes;
  axes.models = {model};
  return axes;
}

TEST(DdpCases, EveryCombinationOfTheAxesIsACaseAndTheDefaultIsTheFirst) {
  Axes axes = AxesOf(Tiny());
  axes.bucket_caps_mb = {0, 1, 100};
  axes.broadcast_buffers = {true, false};
  axes.comm_hooks = {"none", "fp16"};
  axes.accumulate = {1, 4};
  const plan::Plan plan = Expand({}, axes, 2).value();
  EXPECT_TRUE(plan.paired);
  ASSERT_EQ(plan.cases.size(), 24u);
  EXPECT_EQ(plan.cases[0].name, "ddp_step/tiny/cap:default");
  std::set<std::string> names;
  for (const plan::PlannedCase& planned : plan.cases) names.insert(planned.name);
  EXPECT_EQ(names.size(), 24u);
  EXPECT_TRUE(names.contains("ddp_step/tiny/cap:100/hook:fp16/no_buffers/accumulate:4"));
}

TEST(DdpCases, OperationsAreTheBucketsOfTheIteration) {
  Axes axes = AxesOf(Tiny());
  axes.bucket_caps_mb = {0, 1};
  axes.first_iteration = {false, true};
  const plan::Plan plan = Expand({}, axes, 2).value();
  ASSERT_EQ(plan.cases.size(), 4u);
  EXPECT_EQ(plan.cases[0].operations.size(), 2u);  // 1 MiB and the rest
  EXPECT_EQ(plan.cases[0].operations[0].count, (1 << 19) + 10);
  EXPECT_EQ(plan.cases[2].name, "ddp_step/tiny/cap:default/first_iteration");
  EXPECT_EQ(plan.cases[2].operations.size(), 1u);
  EXPECT_EQ(BytesOf(plan.cases[2], 2), 4 * ((1 << 20) + 20));
}

TEST(DdpCases, JsonKeepsStepsAndModels) {
  Axes axes = AxesOf(Tiny());
  axes.bucket_caps_mb = {0, 0.1};
  axes.comm_hooks = {"none", "powersgd"};
  axes.compute_ms = 2.5;
  axes.compute = "matmul";
  const plan::Plan plan = Expand({}, axes, 2).value();
  const plan::Plan again = plan::PlanFromJson(plan::PlanToJson(plan)).value();
  EXPECT_EQ(HashOf(again), HashOf(plan));
  EXPECT_TRUE(again.paired);
  ASSERT_EQ(again.cases.size(), 4u);
  EXPECT_EQ(again.cases[3].step, plan.cases[3].step);
  EXPECT_EQ(plan::StepOf<DdpStep>(again.cases[3]), plan::StepOf<DdpStep>(plan.cases[3]));
  EXPECT_EQ(plan::StepOf<DdpStep>(again.cases[3]).compute, "matmul");
  EXPECT_TRUE(again.cases[0].name.ends_with("/compute:matmul"));
  EXPECT_EQ(again.cases[3].parts, plan.cases[3].parts);
  EXPECT_EQ(again.cases[3].settings, plan.cases[3].settings);
  EXPECT_EQ(again.models[0].tensors.ready_order, plan.models[0].tensors.ready_order);
  EXPECT_EQ(again.models[0].tensors.buffers[1].type, collective::DataType::kI64);
  EXPECT_EQ(again.models[0].tensors.params[0].numel, 1 << 19);
}

TEST(DdpCases, EveryOptionIsInTheHash) {
  std::set<std::string> hashes;
  const auto add = [&](auto Axes::*axis, const auto& value) {
    Axes axes = AxesOf(Tiny());
    axes.*axis = value;
    hashes.insert(HashOf(Expand({}, axes, 2).value()));
  };
  add(&Axes::cuda_graph, std::vector<bool>{false});
  add(&Axes::cuda_graph, std::vector<bool>{true});
  add(&Axes::compute_ms, 2.0);
  add(&Axes::first_bucket_mb, 2.0);
  add(&Axes::static_graph, std::vector<bool>{true});
  EXPECT_EQ(hashes.size(), 5u);
}

TEST(DdpCases, MemoryIsWhatTheCasesShareAndWhatTheyHaveAlone) {
  Axes axes = AxesOf(Tiny());
  const std::int64_t params = 4 * ((1 << 20) + 20);
  const std::int64_t one = Expand({}, axes, 2).value().memory_bytes;
  EXPECT_GE(one, 3 * params);
  axes.bucket_caps_mb = {0, 1, 2, 3};
  EXPECT_EQ(Expand({}, axes, 2).value().memory_bytes, one);
  axes.comm_hooks = {"none", "powersgd"};
  const plan::Plan all = Expand({}, axes, 2).value();
  EXPECT_GE(all.memory_bytes, one + 4 * params);
  EXPECT_EQ(Select(all, {0}).memory_bytes, one);
}

TEST(DdpCases, RefusesWhatCannotBeAStep) {
  Axes axes = AxesOf(Tiny());
  axes.accumulate = {0};
  EXPECT_NE(Expand({}, axes, 2).status().message().find("--accumulate 0"), std::string::npos);
  axes = AxesOf(Tiny());
  axes.compute_ms = -1;
  EXPECT_NE(Expand({}, axes, 2).status().message().find("--compute-ms -1"), std::string::npos);
  EXPECT_FALSE(Expand({}, AxesOf(Tiny()), 1).ok());
  axes = AxesOf(Tiny());
  axes.compute = "matmul";
  EXPECT_NE(Expand({}, axes, 2).status().message().find("--compute-ms"), std::string::npos);
  axes.compute = "gemm";
  EXPECT_NE(Expand({}, axes, 2).status().message().find("'gemm'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::bench::ddp_step
