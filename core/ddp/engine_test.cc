// What becomes of the gradients of models with known ones, on every kind of streams.
#include "core/ddp/engine.h"

#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/ddp/ddp_world.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/small_models.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

TensorInfo Tensor(std::string name, std::vector<std::int64_t> shape,
                  DataType type = DataType::kF32) {
  std::int64_t numel = 1;
  for (const std::int64_t size : shape) numel *= size;
  return {std::move(name), std::move(shape), type, numel};
}

// Two layers of matrices, a normalization between them; about 1.4 MiB in f32.
ModelTensors MlpTensors(DataType type = DataType::kF32) {
  ModelTensors tensors;
  tensors.params = {Tensor("fc1.weight", {300, 500}, type), Tensor("fc1.bias", {300}, type),
                    Tensor("bn.weight", {300}, type),       Tensor("bn.bias", {300}, type),
                    Tensor("fc2.weight", {700, 300}, type), Tensor("fc2.bias", {700}, type)};
  tensors.ready_order = {5, 4, 2, 3, 1, 0};
  tensors.buffers = {Tensor("bn.running_mean", {300}), Tensor("bn.running_var", {300}),
                     Tensor("bn.num_batches_tracked", {}, DataType::kI64)};
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

void RunEngines(const DdpWorldOptions& world, const ModelTensors& tensors,
                const EngineOptions& options, ManifestModelOptions model_options,
                const std::function<void(Rank& rank, EnginePorts ports)>& body,
                const std::function<EngineObserver*(int rank)>& observer = nullptr) {
  RunDdpWorld(world, [&](EnginePorts ports) {
    ManifestModelOptions own = model_options;
    own.rank = ports.communicator.rank();
    if (observer != nullptr) ports.observer = observer(own.rank);
    auto model = ManifestModel::Make(tensors, own, ports.device, ports.kernels);
    ASSERT_TRUE(model.ok()) << model.status().message();
    auto engine = Engine::Construct(**model, options, ports);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    Rank rank{std::move(*model), std::move(*engine)};
    body(rank, ports);
    ASSERT_TRUE(rank.engine->Synchronize().ok());
  });
}

void ExpectMean(Rank& rank, int ranks, std::int64_t first_input, std::int64_t inputs,
                double tolerance) {
  ASSERT_TRUE(rank.engine->Synchronize().ok());
  const GradientCheck check =
      CheckMeanGradients(*rank.model, ranks, first_input, inputs, tolerance);
  EXPECT_EQ(check.wrong, 0) << check.first;
  EXPECT_GT(check.compared, 0);
}

EngineOptions SmallBuckets() {
  EngineOptions options;
  options.buckets.cap_bytes = 400'000;
  options.buckets.first_cap_bytes = 10'000;
  return options;
}

double ToleranceFor(int ranks) { return (ranks & (ranks - 1)) == 0 ? 0 : 1e-6; }

TEST(Engine, GradientsAreTheMeanOfAllRanks) {
  for (const Streams streams : kAllStreams) {
    for (const int ranks : {1, 2, 3, 4}) {
      RunEngines({.ranks = ranks, .streams = streams}, MlpTensors(), SmallBuckets(), {},
                 [&](Rank& rank, EnginePorts) {
                   for (std::int64_t input = 0; input < 4; ++input) {
                     rank.engine->ZeroGrad();
                     rank.Step(input);
                     ExpectMean(rank, ranks, input, 1, ToleranceFor(ranks));
                   }
                   EXPECT_TRUE(rank.engine->has_rebuilt_buckets());
                   EXPECT_EQ(rank.engine->layout().size(), 2u);
                   EXPECT_EQ(rank.engine->layout()[0].params, (std::vector<int>{5, 4}));
                 });
    }
  }
}

TEST(Engine, EveryTypeOfGradient) {
  for (const DataType type : {DataType::kF16, DataType::kBf16, DataType::kF64}) {
    RunEngines({}, MlpTensors(type), SmallBuckets(), {}, [&](Rank& rank, EnginePorts) {
      rank.Step(7);
      ExpectMean(rank, 2, 7, 1, 0);
    });
  }
}

TEST(Engine, StateAndBuffersAreThoseOfRankZero) {
  for (const bool broadcast_buffers : {true, false}) {
    EngineOptions options = SmallBuckets();
    options.broadcast_buffers = broadcast_buffers;
    std::vector<float> first[3];
    std::int64_t batches[3] = {};
    float mean[3] = {};
    RunEngines({.ranks = 3}, MlpTensors(), options, {}, [&](Rank& rank, EnginePorts ports) {
      const auto r = static_cast<std::size_t>(ports.communicator.rank());
      rank.Step(0);
      const auto* data = static_cast<const float*>(rank.model->params()[0].data);
      first[r].assign(data, data + 150'000);
      batches[r] = *static_cast<const std::int64_t*>(rank.model->buffers()[2].data);
      mean[r] = *static_cast<const float*>(rank.model->buffers()[0].data);
    });
    EXPECT_EQ(first[1], first[0]);
    EXPECT_EQ(first[2], first[0]);
    EXPECT_EQ(mean[1] == mean[0], broadcast_buffers);
    EXPECT_EQ(batches[2] == batches[0], broadcast_buffers);
    EXPECT_EQ(batches[0], 1);
  }
}

TEST(Engine, NoSyncAccumulatesWithoutCommunicating) {
  for (const Streams streams : kAllStreams) {
    RunEngines({.streams = streams}, MlpTensors(), SmallBuckets(), {}, [](Rank& rank, EnginePorts) {
      rank.Step(0);
      rank.engine->ZeroGrad();
      rank.engine->launcher().set_keep_times(true);
      rank.engine->set_require_backward_grad_sync(false);
      rank.Step(1);
      const auto first = rank.engine->TakeStepTimes();
      ASSERT_TRUE(first.ok());
      EXPECT_EQ(first->collectives.size(), 4u);  // rebuilding 2, buffers 2
      rank.Step(2);
      const auto second = rank.engine->TakeStepTimes();
      EXPECT_EQ(second->collectives.size(), 0u);
      rank.engine->set_require_backward_grad_sync(true);
      rank.Step(3);
      ExpectMean(rank, 2, 1, 3, 0);
    });
  }
}

TEST(Engine, HooksOfNarrowTypesAreExactForSmallIntegers) {
  for (const CommHook hook : {CommHook::kAllReduce, CommHook::kFp16, CommHook::kBf16}) {
    EngineOptions options = SmallBuckets();
    options.hook = hook;
    const DataType type = hook == CommHook::kFp16   ? DataType::kF16
                          : hook == CommHook::kBf16 ? DataType::kBf16
                                                    : DataType::kF32;
    for (const Streams streams : kAllStreams) {
      RunEngines({.streams = streams}, MlpTensors(), options, {}, [&](Rank& rank, EnginePorts) {
        rank.engine->launcher().set_keep_times(true);
        for (std::int64_t input = 0; input < 3; ++input) {
          rank.engine->ZeroGrad();
          rank.Step(input);
          ExpectMean(rank, 2, input, 1, 0);
        }
        const auto times = rank.engine->TakeStepTimes();
        ASSERT_TRUE(times.ok());
        EXPECT_EQ(times->collectives.back().operation.type, type);
      });
    }
  }
}

// A narrow type that could not hold the gradient must show.
TEST(Engine, TheBf16HookRoundsWhatBf16CannotHold) {
  EngineOptions options = SmallBuckets();
  options.hook = CommHook::kBf16;
  RunEngines({}, MlpTensors(), options, {}, [&](Rank& rank, EnginePorts) {
    rank.engine->set_require_backward_grad_sync(false);
    for (std::int64_t input = 0; input < 40; ++input) rank.Step(input);
    rank.engine->set_require_backward_grad_sync(true);
    rank.Step(40);
    ASSERT_TRUE(rank.engine->Synchronize().ok());
    EXPECT_GT(CheckMeanGradients(*rank.model, 2, 0, 41, 0).wrong, 1000);
    EXPECT_EQ(CheckMeanGradients(*rank.model, 2, 0, 41, 0.02).wrong, 0);
  });
}

TEST(Engine, PowerSgdRecoversGradientsOfItsRank) {
  EngineOptions options = SmallBuckets();
  options.hook = CommHook::kPowerSgd;
  options.power_sgd.start_iteration = 2;
  for (const Streams streams : kAllStreams) {
    RunEngines({.ranks = 3, .streams = streams}, MlpTensors(), options, {.low_rank = true},
               [&](Rank& rank, EnginePorts) {
                 rank.engine->launcher().set_keep_times(true);
                 for (std::int64_t input = 0; input < 5; ++input) {
                   rank.engine->ZeroGrad();
                   rank.Step(input);
                   ExpectMean(rank, 3, input, 1, 1e-4);
                   const auto times = rank.engine->TakeStepTimes();
                   ASSERT_TRUE(times.ok());
                   const auto& last = times->collectives.back();
                   EXPECT_EQ(last.annotation.purpose,
                             input < 2 ? Purpose::kBucket : Purpose::kPowerSgdFactorQ);
                   if (input >= 2) {
                     EXPECT_EQ(last.operation.count, 500);  // fc1.weight has 500 columns
                   }
                 }
               });
  }
}

// How far the mean of 60 steps' gradients is from the true one, relative to it, when all steps have
// the same gradient of full rank.
double MeanErrorOfPowerSgd(bool error_feedback) {
  ModelTensors tensors;
  tensors.params = {Tensor("weight", {40, 60})};
  tensors.ready_order = {0};
  EngineOptions options;
  options.hook = CommHook::kPowerSgd;
  options.power_sgd.start_iteration = 2;
  options.power_sgd.error_feedback = error_feedback;
  double error = 0;
  RunEngines({}, tensors, options, {}, [&](Rank& rank, EnginePorts ports) {
    constexpr int kSteps = 60;
    std::vector<double> mean(2400);
    for (std::int64_t step = 0; step < 2 + kSteps; ++step) {
      rank.engine->ZeroGrad();
      rank.Step(5);
      const auto* grad = static_cast<const float*>(rank.model->params()[0].grad);
      for (std::size_t i = 0; step >= 2 && i < mean.size(); ++i) mean[i] += grad[i] / kSteps;
    }
    if (ports.communicator.rank() != 0) return;
    double squares = 0;
    double wrong = 0;
    const TensorInfo& info = rank.model->params()[0].info;
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const auto element = static_cast<std::int64_t>(i);
      const double want = (SyntheticGradient(0, 5, 0, info, element, false) +
                           SyntheticGradient(1, 5, 0, info, element, false)) /
                          2;
      squares += want * want;
      wrong += (mean[i] - want) * (mean[i] - want);
    }
    error = std::sqrt(wrong / squares);
  });
  return error;
}

TEST(Engine, PowerSgdFeedsBackWhatItLost) {
  const double lost = MeanErrorOfPowerSgd(false);
  EXPECT_GT(lost, 0.1);  // a rank-1 approximation of a matrix of rank 40
  EXPECT_LT(MeanErrorOfPowerSgd(true), 0.75 * lost);
}

TEST(Engine, UnusedParametersAreFoundAndLeftAlone) {
  EngineOptions options = SmallBuckets();
  options.buckets.find_unused_parameters = true;
  for (const Streams streams : kAllStreams) {
    // Rank 1 alone does not use fc1.bias; nobody uses bn.bias.
    RunDdpWorld({.streams = streams}, [&](EnginePorts ports) {
      const int rank = ports.communicator.rank();
      ManifestModelOptions own = {.rank = rank};
      own.unused = rank == 1 ? std::vector<int>{1, 3} : std::vector<int>{3};
      auto model = ManifestModel::Make(MlpTensors(), own, ports.device, ports.kernels);
      ASSERT_TRUE(model.ok());
      auto engine = Engine::Construct(**model, options, ports);
      ASSERT_TRUE(engine.ok());
      Rank both{std::move(*model), std::move(*engine)};
      for (std::int64_t input = 0; input < 3; ++input) {
        both.engine->ZeroGrad();
        both.Step(input);
      }
      ASSERT_TRUE(both.engine->Synchronize().ok());
      EXPECT_FALSE(both.model->params()[3].has_grad);
      ASSERT_TRUE(both.model->params()[1].has_grad);
      const Parameter& bias = both.model->params()[1];
      for (std::int64_t i = 0; i < 300; ++i) {
        EXPECT_EQ(static_cast<const float*>(bias.grad)[i],
                  SyntheticGradient(0, 2, 1, bias.info, i, false) / 2);
      }
    });
  }
}

TEST(Engine, AnUnusedParameterWithoutSearchIsAnErrorOfTheNextForward) {
  RunEngines({}, MlpTensors(), SmallBuckets(), {.unused = {0}}, [](Rank& rank, EnginePorts ports) {
    rank.Step(0);
    const Status status = rank.engine->Forward({.input = 1});
    EXPECT_EQ(status.code(), StatusCode::kSystemFailed);
    EXPECT_THAT(status.message(), HasSubstr("Expected to have finished reduction"));
    EXPECT_THAT(status.message(),
                HasSubstr(fmt::format("for rank {}: 0", ports.communicator.rank())));
  });
}

TEST(Engine, StaticGraphFindsUnusedParametersInTheFirstIteration) {
  EngineOptions options = SmallBuckets();
  options.buckets.static_graph = true;
  RunEngines({}, MlpTensors(), options, {.unused = {2}}, [](Rank& rank, EnginePorts) {
    for (std::int64_t input = 0; input < 4; ++input) {
      rank.engine->ZeroGrad();
      rank.Step(input);
      const Parameter& last = rank.model->params()[5];
      EXPECT_EQ(static_cast<const float*>(last.grad)[3],
                (SyntheticGradient(0, input, 5, last.info, 3, false) +
                 SyntheticGradient(1, input, 5, last.info, 3, false)) /
                    2);
      EXPECT_FALSE(rank.model->params()[2].has_grad);
      EXPECT_EQ(rank.engine->has_rebuilt_buckets(), input >= 2);
    }
  });
}

TEST(Engine, BucketsAreLaunchedInOrderAlthoughGradientsAreNot) {
  ModelTensors tensors = MlpTensors();
  tensors.ready_order = {0, 1, 2, 3, 4, 5};  // unlike the order that buckets are made for
  EngineOptions options = SmallBuckets();
  options.buckets.find_unused_parameters = true;  // keeps the first layout
  RunEngines({}, tensors, options, {}, [](Rank& rank, EnginePorts) {
    rank.engine->launcher().set_keep_times(true);
    rank.Step(0);
    const auto times = rank.engine->TakeStepTimes();
    ASSERT_TRUE(times.ok());
    std::int32_t next = 0;
    for (const CollectiveTimes& one : times->collectives) {
      if (one.annotation.purpose != Purpose::kBucket) continue;
      EXPECT_EQ(one.annotation.detail, next++);
      EXPECT_LE(one.ready, one.start);
      EXPECT_LE(one.start, one.end);
    }
    EXPECT_GT(next, 1);
    ExpectMean(rank, 2, 0, 1, 0);
  });
}

TEST(Engine, RanksWithDifferentModelsAreTold) {
  std::string messages[2];
  RunDdpWorld({.timeout_seconds = 3}, [&](EnginePorts ports) {
    const int rank = ports.communicator.rank();
    ModelTensors tensors = MlpTensors();
    if (rank == 1) {
      tensors.params.pop_back();
      tensors.ready_order = {4, 2, 3, 1, 0};
    }
    auto model = ManifestModel::Make(tensors, {.rank = rank}, ports.device, ports.kernels);
    ASSERT_TRUE(model.ok());
    const auto engine = Engine::Construct(**model, {}, ports);
    ASSERT_FALSE(engine.ok());
    messages[rank] = engine.status().message();
  });
  EXPECT_EQ(messages[0],
            "DDP expects same model across all ranks, but Rank 0 has 6 params, while rank 1 has "
            "inconsistent 5 params.");
  EXPECT_THAT(messages[1], HasSubstr("Rank 1 has 5 params, while rank 0 has inconsistent 6"));
}

TEST(Engine, SynchronizedBatchNormTalksOncePerLayerAndDirection) {
  for (const bool small : {true, false}) {
    std::vector<Purpose> purposes[2];
    RunDdpWorld({}, [&](EnginePorts ports) {
      const int rank = ports.communicator.rank();
      TraceObserver observer;
      ports.observer = &observer;
      observer.OnSection({});
      std::unique_ptr<Module> module;
      if (small) {
        module = MakeSmallModel("bn_4_4_2", {.sync_batch_norm = true}, ports.kernels).value();
      } else {
        module = ManifestModel::Make(MlpTensors(), {.rank = rank, .sync_batch_norm = true},
                                     ports.device, ports.kernels)
                     .value();
      }
      auto engine = Engine::Construct(*module, {}, ports);
      ASSERT_TRUE(engine.ok());
      observer.purposes.clear();
      observer.OnSection({SectionKind::kIteration, 0});
      ASSERT_TRUE((*engine)->Forward({}).ok());
      ASSERT_TRUE((*engine)->Backward().ok());
      ASSERT_TRUE((*engine)->Synchronize().ok());
      purposes[rank] = observer.purposes;
      const int channels = small ? 4 : 300;
      EXPECT_THAT(observer.lines.back().calls,
                  HasSubstr(fmt::format("ALLGATHER[{}].Float", 2 * channels + 1)));
      EXPECT_THAT(observer.lines.back().calls,
                  HasSubstr(fmt::format("ALLREDUCE[{}].Float", 2 * channels)));
      ASSERT_TRUE((*engine)->Forward({.training = false, .grad = false}).ok());
      ASSERT_TRUE((*engine)->Synchronize().ok());
      EXPECT_EQ(observer.purposes.size(), purposes[rank].size() + 2);  // buffers only
    });
    const std::vector<Purpose> expected = {Purpose::kBufferBroadcast, Purpose::kBufferBroadcast,
                                           Purpose::kBatchNormForward, Purpose::kBatchNormBackward,
                                           Purpose::kBucket};
    EXPECT_EQ(purposes[0], expected);
    EXPECT_EQ(purposes[1], expected);
  }
}

}  // namespace
}  // namespace lockstep
