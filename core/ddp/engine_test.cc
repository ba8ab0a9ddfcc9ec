// What becomes of the gradients of models with known ones, on every kind of streams.
#include "core/ddp/engine.h"

#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "core/collective/half.h"
#include "core/ddp/manifest_model.h"
#include "core/ddp/small_models.h"
#include "core/ddp/testing/ddp_world.h"
#include "core/ddp/testing/engine_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

using testing::HasSubstr;

// One parameter whose gradient is what it is told.
class FixedGradient final : public Module {
 public:
  FixedGradient(collective::DataType type, double value) : value_(value) {
    Parameter param;
    param.info = Tensor("weight", {1}, type);
    param.data = &data_;
    param.grad = &grad_;
    params_.push_back(param);
  }
  std::vector<Parameter>& params() override { return params_; }
  std::vector<ModuleBuffer>& buffers() override { return buffers_; }
  const std::vector<bool>& used() const override { return used_; }
  Status Forward(const Pass&, ModuleContext) override { return OkStatus(); }
  Status Backward(const Ready& ready, ModuleContext) override {
    const bool is_half = params_[0].info.type == collective::DataType::kF16;
    grad_ = is_half ? collective::F16FromFloat(static_cast<float>(value_))
                    : std::bit_cast<std::uint32_t>(static_cast<float>(value_));
    params_[0].has_grad = true;
    return ready(0);
  }
  float grad() const {
    const bool is_half = params_[0].info.type == collective::DataType::kF16;
    return is_half ? collective::FloatFromF16(static_cast<std::uint16_t>(grad_))
                   : std::bit_cast<float>(grad_);
  }

 private:
  double value_;
  std::uint32_t data_ = 0;
  std::uint32_t grad_ = 0;
  std::vector<Parameter> params_;
  std::vector<ModuleBuffer> buffers_;
  std::vector<bool> used_ = {true};
};

float MeanOf(collective::DataType type, const std::vector<double>& values) {
  std::vector<float> means(values.size());
  RunDdpWorld({.ranks = static_cast<int>(values.size())}, [&](EnginePorts ports) {
    const auto rank = static_cast<std::size_t>(ports.communicator.rank());
    FixedGradient module(type, values[rank]);
    auto engine = Engine::Make(module, {}, ports);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    ASSERT_TRUE((*engine)->Construct().ok());
    ASSERT_TRUE((*engine)->Forward({}).ok());
    ASSERT_TRUE((*engine)->Backward().ok());
    ASSERT_TRUE((*engine)->Synchronize().ok());
    means[rank] = module.grad();
  });
  for (const float mean : means) EXPECT_EQ(mean, means.front());
  return means.front();
}

TEST(Engine, GradientsAreDividedBeforeTheyAreAdded) {
  EXPECT_EQ(MeanOf(collective::DataType::kF16, {40000, 40000}), 40000);  // whose sum is infinite
}

TEST(Engine, DivisionIsAProductWithTheRoundedReciprocal) {
  float value = 1;
  while (value * (1.0f / 3) == value / 3) value += 1;
  EXPECT_EQ(MeanOf(collective::DataType::kF32, {0, value, 0}), value * (1.0f / 3));
}

TEST(Engine, GradientsAreTheMeanOfAllRanks) {
  for (const Streams streams : kAllStreams) {
    for (const int ranks : {1, 2, 3, 4}) {
      RunEngines({.ranks = ranks, .streams = streams}, MlpTensors(), SmallBuckets(), {},
                 [&](Rank& rank, EnginePorts) {
                   for (std::int64_t input = 0; input < 4; ++input) {
                     rank.engine->ZeroGrad();
                     rank.Step(input);
                     ExpectMean(rank, ranks, input, 1, 0);
                   }
                   EXPECT_TRUE(rank.engine->has_rebuilt_buckets());
                   EXPECT_EQ(rank.engine->layout().size(), 2u);
                   EXPECT_EQ(rank.engine->layout()[0].params, (std::vector<int>{5, 4}));
                 });
    }
  }
}

TEST(Engine, EveryTypeOfGradient) {
  for (const collective::DataType type :
       {collective::DataType::kF16, collective::DataType::kBf16, collective::DataType::kF64}) {
    RunEngines({}, MlpTensors(type), SmallBuckets(), {}, [&](Rank& rank, EnginePorts) {
      rank.Step(7);
      ExpectMean(rank, 2, 7, 1, 0);
    });
  }
}

// Beyond the digits of a type sums are rounded, also on a power of two of ranks.
TEST(Engine, LongSumsAreRoundedAndNotWrong) {
  using Type = collective::DataType;
  for (const auto& [type, ranks, inputs] : {std::tuple(Type::kF16, 3, 40),
                                            {Type::kBf16, 2, 40},
                                            {Type::kBf16, 32, 1},
                                            {Type::kBf16, 8, 2},
                                            {Type::kF32, 3, 40}}) {
    RunEngines({.ranks = ranks}, MlpTensors(type), SmallBuckets(), {},
               [&, inputs = inputs](Rank& rank, EnginePorts ports) {
                 for (std::int64_t input = 0; input < inputs; ++input) rank.Step(input);
                 ExpectMean(rank, ports.communicator.size(), 0, inputs, 0);
               });
  }
  EXPECT_EQ(RoundingOfMean(16, 1, 1, RoundingOf(Type::kBf16)), 0);
  EXPECT_EQ(RoundingOfMean(2, 4, 4, RoundingOf(Type::kBf16)), 0);
  EXPECT_EQ(RoundingOfMean(4, 4, 1, RoundingOf(Type::kBf16)), 0);
  EXPECT_GT(RoundingOfMean(4, 4, 4, RoundingOf(Type::kBf16)), 0);
  EXPECT_EQ(RoundingOfMean(4, 100, 100, RoundingOf(Type::kF32)), 0);
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
      auto engine = Engine::Make(**model, options, ports);
      ASSERT_TRUE(engine.ok() && (*engine)->Construct().ok());
      Rank both{std::move(*model), std::move(*engine)};
      for (std::int64_t input = 0; input < 3; ++input) {
        both.engine->ZeroGrad();
        both.Step(input);
      }
      ASSERT_TRUE(both.engine->Synchronize().ok());
      EXPECT_FALSE(both.model->params()[3].has_grad);
      ASSERT_TRUE(both.model->params()[1].has_grad);
      const Parameter& bias = both.model->params()[1];
      const ExpectedGradient of_rank_0(1, 2, 1, 1, bias.info, /*low_rank=*/false);
      for (std::int64_t i = 0; i < 300; ++i) {
        EXPECT_EQ(static_cast<const float*>(bias.grad)[i], of_rank_0.At(i) / 2);
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
                ExpectedGradient(2, input, 1, 5, last.info, /*low_rank=*/false).At(3));
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
      if (one.annotation.purpose != journal::Purpose::kBucket) continue;
      EXPECT_EQ(one.annotation.detail, next++);
      EXPECT_LE(one.ready, one.start);
      EXPECT_LE(one.start, one.end);
    }
    EXPECT_GT(next, 1);
    ExpectMean(rank, 2, 0, 1, 0);
  });
}

TEST(Engine, StepTimesAreInOrderAndShowWhatCanOverlap) {
  for (const Streams streams : kAllStreams) {
    RunEngines({.streams = streams}, MlpTensors(), SmallBuckets(), {.compute_us = 2000},
               [](Rank& rank, EnginePorts) {
                 rank.engine->launcher().set_keep_times(true);
                 for (std::int64_t input = 0; input < 3; ++input) {
                   rank.Step(input);
                   const auto times = rank.engine->TakeStepTimes();
                   ASSERT_TRUE(times.ok()) << times.status().message();
                   EXPECT_LE(times->forward_begin, times->buffers_begin);
                   EXPECT_LE(times->buffers_begin, times->buffers_end);
                   EXPECT_LT(times->buffers_end, times->forward_end);
                   EXPECT_LE(times->forward_end, times->backward_begin);
                   EXPECT_LT(times->backward_begin, times->backward_compute_end);
                   EXPECT_LE(times->backward_compute_end, times->backward_end);
                   const CollectiveTimes& last = times->collectives.back();
                   EXPECT_LE(last.end, times->backward_end);
                   const CollectiveTimes& first_bucket =
                       times->collectives[times->collectives.size() - (input == 0 ? 1 : 2)];
                   EXPECT_EQ(first_bucket.annotation,
                             (journal::Annotation{journal::Purpose::kBucket, 0, -1}));
                   EXPECT_GE(first_bucket.ready, times->backward_begin);
                   EXPECT_LE(first_bucket.start, first_bucket.end);
                   if (input > 0) {  // fc1 is still to be computed
                     EXPECT_LT(first_bucket.ready, last.ready);
                     EXPECT_LT(first_bucket.ready, times->backward_compute_end);
                   }
                 }
               });
  }
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
    const auto engine = Engine::Make(**model, {}, ports).value();
    messages[rank] = engine->Construct().message();
  });
  EXPECT_EQ(messages[0],
            "DDP expects same model across all ranks, but Rank 0 has 6 params, while rank 1 has "
            "inconsistent 5 params.");
  EXPECT_THAT(messages[1], HasSubstr("Rank 1 has 5 params, while rank 0 has inconsistent 6"));
}

TEST(Engine, SynchronizedBatchNormTalksOncePerLayerAndDirection) {
  for (const bool small : {true, false}) {
    std::vector<journal::Purpose> purposes[2];
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
      auto engine = Engine::Make(*module, {}, ports);
      ASSERT_TRUE(engine.ok() && (*engine)->Construct().ok());
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
    const std::vector<journal::Purpose> expected = {
        journal::Purpose::kBufferBroadcast, journal::Purpose::kBufferBroadcast,
        journal::Purpose::kBatchNormForward, journal::Purpose::kBatchNormBackward,
        journal::Purpose::kBucket};
    EXPECT_EQ(purposes[0], expected);
    EXPECT_EQ(purposes[1], expected);
  }
}

}  // namespace
}  // namespace lockstep::ddp
