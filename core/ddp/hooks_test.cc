// Communication hooks: what comes out of them.
#include <cmath>
#include <vector>

#include "core/ddp/testing/engine_ranks.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

TEST(Hooks, HooksOfNarrowTypesAreExactForSmallIntegers) {
  for (const CommHook hook : {CommHook::kAllReduce, CommHook::kFp16, CommHook::kBf16}) {
    EngineOptions options = SmallBuckets();
    options.hook = hook;
    const collective::DataType type = hook == CommHook::kFp16   ? collective::DataType::kF16
                                      : hook == CommHook::kBf16 ? collective::DataType::kBf16
                                                                : collective::DataType::kF32;
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
TEST(Hooks, TheBf16HookRoundsWhatBf16CannotHold) {
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

TEST(Hooks, PowerSgdRecoversGradientsOfItsRank) {
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
                   EXPECT_EQ(last.annotation.purpose, input < 2
                                                          ? journal::Purpose::kBucket
                                                          : journal::Purpose::kPowerSgdFactorQ);
                   if (input >= 2) {
                     EXPECT_EQ(last.operation.count, 500);  // fc1.weight has 500 columns
                   }
                 }
               });
  }
}

// As with a GPU, whose library reads no memory of the host's.
TEST(Hooks, PowerSgdExchangesMemoryOfTheDevice) {
  EngineOptions options = SmallBuckets();
  options.hook = CommHook::kPowerSgd;
  options.power_sgd.start_iteration = 1;
  for (const Streams streams : kAllStreams) {
    RunEngines({.streams = streams, .own_memory = true}, MlpTensors(), options, {.low_rank = true},
               [&](Rank& rank, EnginePorts) {
                 for (std::int64_t input = 0; input < 3; ++input) {
                   rank.engine->ZeroGrad();
                   rank.Step(input);
                   ExpectMean(rank, 2, input, 1, 1e-4);
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
    const ExpectedGradient expected(2, 5, 1, 0, rank.model->params()[0].info, /*low_rank=*/false);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const double want = expected.At(static_cast<std::int64_t>(i));
      squares += want * want;
      wrong += (mean[i] - want) * (mean[i] - want);
    }
    error = std::sqrt(wrong / squares);
  });
  return error;
}

TEST(Hooks, PowerSgdFeedsBackWhatItLost) {
  const double lost = MeanErrorOfPowerSgd(false);
  EXPECT_GT(lost, 0.1);  // a rank-1 approximation of a matrix of rank 40
  EXPECT_LT(MeanErrorOfPowerSgd(true), 0.75 * lost);
}

}  // namespace
}  // namespace lockstep::ddp
