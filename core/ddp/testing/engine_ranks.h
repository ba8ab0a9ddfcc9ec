// Engines over models of known gradients, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ddp/engine.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/testing/ddp_world.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {

inline TensorInfo Tensor(std::string name, std::vector<std::int64_t> shape,
                         collective::DataType type = collective::DataType::kF32) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return {std::move(name), std::move(shape), type, numel};
}

// Two layers of matrices, a normalization between them; about 1.4 MiB in f32.
inline ModelTensors MlpTensors(collective::DataType type = collective::DataType::kF32) {
  ModelTensors tensors;
  tensors.params = {Tensor("fc1.weight", {300, 500}, type), Tensor("fc1.bias", {300}, type),
                    Tensor("bn.weight", {300}, type),       Tensor("bn.bias", {300}, type),
                    Tensor("fc2.weight", {700, 300}, type), Tensor("fc2.bias", {700}, type)};
  tensors.ready_order = {5, 4, 2, 3, 1, 0};
  tensors.buffers = {Tensor("bn.running_mean", {300}), Tensor("bn.running_var", {300}),
                     Tensor("bn.num_batches_tracked", {}, collective::DataType::kI64)};
  return tensors;
}

// An engine over a model of known gradients, on one rank.
struct Rank {
  std::unique_ptr<ManifestModel> model;
  std::unique_ptr<Engine> engine;

  void Step(std::int64_t input) {
    const Status forward = engine->Forward({.input = input});
    ASSERT_TRUE(forward.ok()) << forward.message();
    const Status backward = engine->Backward();
    ASSERT_TRUE(backward.ok()) << backward.message();
  }
};

inline void RunEngines(const DdpWorldOptions& world, const ModelTensors& tensors,
                       const EngineOptions& options, ManifestModelOptions model_options,
                       const std::function<void(Rank& rank, EnginePorts ports)>& body,
                       const std::function<EngineObserver*(int rank)>& observer = nullptr) {
  RunDdpWorld(world, [&](EnginePorts ports) {
    ManifestModelOptions own = model_options;
    own.rank = ports.communicator.rank();
    if (observer != nullptr) ports.observer = observer(own.rank);
    auto model = ManifestModel::Make(tensors, own, ports.device, ports.kernels);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto engine = Engine::Make(**model, options, ports);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    const Status constructed = (*engine)->Construct();
    ASSERT_TRUE(constructed.ok()) << constructed.message();
    Rank rank{std::move(*model), std::move(*engine)};
    body(rank, ports);
    ASSERT_TRUE(rank.engine->Synchronize().ok());
  });
}

inline void ExpectMean(Rank& rank, int ranks, std::int64_t first_input, std::int64_t inputs,
                       double tolerance) {
  ASSERT_TRUE(rank.engine->Synchronize().ok());
  const GradientCheck check =
      CheckMeanGradients(*rank.model, ranks, first_input, inputs, tolerance);
  EXPECT_EQ(check.wrong, 0) << check.first;
  EXPECT_GT(check.compared, 0);
}

inline EngineOptions SmallBuckets() {
  EngineOptions options;
  options.buckets.cap_bytes = 400'000;
  options.buckets.first_cap_bytes = 10'000;
  return options;
}

}  // namespace lockstep::ddp
