// Training programs on ranks with uneven inputs: what they end with, over gloo.
#include "core/ddp/training.h"

#include <mutex>
#include <string>
#include <vector>

#include "core/comm/recorded.h"
#include "core/ddp/journal_observer.h"
#include "core/ddp/small_models.h"
#include "core/ddp/testing/ddp_world.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Linear(1,1), rank r has 5 + r inputs of gradient 1: what the forum's six cases have.
TrainingProgram UnevenInputs() {
  TrainingProgram program;
  program.model = "linear_1_1";
  program.inputs = {{5}};
  program.extra_inputs_per_rank = 1;
  program.join = true;
  return program;
}

struct RankEnding {
  TrainingOutcome outcome;
  double grad = 0;
  TraceObserver observer;
};

std::vector<RankEnding> RunProgram(const TrainingProgram& program, const DdpWorldOptions& world) {
  std::vector<RankEnding> endings(static_cast<std::size_t>(world.ranks));
  RunDdpWorld(world, [&](EnginePorts ports) {
    RankEnding& ending = endings[static_cast<std::size_t>(ports.communicator.rank())];
    auto module = MakeSmallModel(program.model,
                                 {.branch_c = program.branch.At(ports.communicator.rank()) == 'c',
                                  .linear_rows = 1,
                                  .sync_batch_norm = program.sync_batch_norm},
                                 ports.kernels, world.own_memory ? &ports.device : nullptr);
    ASSERT_TRUE(module.ok());
    ports.observer = &ending.observer;
    NoSurroundings surroundings;
    ending.outcome = RunTraining(program, **module, ports, surroundings);
    if (!ending.outcome.status.ok()) {
      EXPECT_TRUE(ports.communicator.Abort().ok());
      static_cast<void>(ending.outcome.engine->Synchronize());
    }
    ending.outcome.engine.reset();
    ending.grad = static_cast<const float*>((*module)->params()[0].grad)[0];
  });
  return endings;
}

// In iteration k (from 0) k + 1 is what every rank that still trains has accumulated, if all
// trained so far; joined ranks keep what they had.
double UnevenGradient(int rank, int ranks, bool divide_by_initial) {
  double grad = 0;  // of the ranks that still train
  double own = 0;
  for (int iteration = 0; iteration < 5 + ranks - 1; ++iteration) {
    const int training = std::min(ranks, ranks - (iteration - 4));
    grad = (grad + 1) * training / (divide_by_initial ? ranks : training);
    if (iteration < 5 + rank) own = grad;
  }
  return own;
}

// As on a GPU, whose library reads no memory of the host's: join, unused parameters, SyncBatchNorm,
// buffers and every hook.
TEST(Training, WhatTravelsIsInTheDevicesMemory) {
  for (const CommHook hook : {CommHook::kNone, CommHook::kAllReduce, CommHook::kFp16,
                              CommHook::kBf16, CommHook::kPowerSgd}) {
    for (const char* model : {"linear_1_1", "bn_4_4_2", "two_branch"}) {
      TrainingProgram program = UnevenInputs();
      program.model = model;
      program.comm_hook = hook;
      program.find_unused_parameters = program.model == "two_branch";
      const auto endings = RunProgram(program, {.own_memory = true});
      for (const RankEnding& ending : endings) {
        EXPECT_TRUE(ending.outcome.status.ok()) << model << ": " << ending.outcome.status.message();
      }
    }
  }
  TrainingProgram synced;
  synced.model = "bn_4_4_2";
  synced.inputs = {{3}};
  synced.sync_batch_norm = true;
  for (const RankEnding& ending : RunProgram(synced, {.own_memory = true})) {
    EXPECT_TRUE(ending.outcome.status.ok()) << ending.outcome.status.message();
  }
}

TEST(Training, JoinedRanksShadowTheOthers) {
  EXPECT_EQ(UnevenGradient(0, 2, true), 5);
  EXPECT_EQ(UnevenGradient(1, 2, true), 3);  // as PyTorch gives it
  for (const Streams streams : kAllStreams) {
    for (const int ranks : {2, 3, 4}) {
      for (const bool divide_by_initial : {true, false}) {
        for (const BarrierPlace barrier : {BarrierPlace::kNone, BarrierPlace::kAfterLoop}) {
          const bool usual = streams == Streams::kBeside;
          if (!usual && (ranks == 3 || barrier != BarrierPlace::kNone)) continue;
          TrainingProgram program = UnevenInputs();
          program.divide_by_initial_world_size = divide_by_initial;
          program.barrier = barrier;
          const auto endings = RunProgram(program, {.ranks = ranks, .streams = streams});
          for (int r = 0; r < ranks; ++r) {
            const RankEnding& ending = endings[static_cast<std::size_t>(r)];
            EXPECT_TRUE(ending.outcome.status.ok()) << ending.outcome.status.message();
            EXPECT_NEAR(ending.grad, UnevenGradient(r, ranks, divide_by_initial), 1e-6)
                << "rank " << r << " of " << ranks;
            EXPECT_EQ(ending.outcome.iterations, 5 + r);
          }
        }
      }
    }
  }
}

// As after optimizers that went apart: the model of the last rank to join is everybody's.
TEST(Training, TheLastJoinersModelIsTheFinalOne) {
  for (const std::vector<int>& inputs : {std::vector{1, 3, 2}, std::vector{2, 2, 1}}) {
    RunDdpWorld({.ranks = 3}, [&](EnginePorts ports) {
      const int rank = ports.communicator.rank();
      auto module = MakeSmallModel("linear_1_1", {}, ports.kernels);
      auto engine = Engine::Make(**module, {}, ports);
      ASSERT_TRUE(engine.ok() && (*engine)->Construct().ok());
      (*engine)->EnterJoin({});
      for (int i = 0; i < inputs[static_cast<std::size_t>(rank)]; ++i) {
        ASSERT_TRUE((*engine)->Forward({}).ok());
        ASSERT_TRUE((*engine)->Backward().ok());
      }
      auto* const weight = static_cast<float*>((*module)->params()[0].data);
      *weight = static_cast<float>(10 + rank);
      ASSERT_TRUE((*engine)->ExitJoin().ok());
      ASSERT_TRUE((*engine)->Synchronize().ok());
      EXPECT_EQ(*weight, 11) << "rank " << rank;  // of rank 1: alone, or the larger of two
    });
  }
}

TEST(Training, Case1HasAsManyCollectivesAsPyTorch) {
  for (const RankEnding& ending : RunProgram(UnevenInputs(), {})) {
    EXPECT_EQ(ending.observer.purposes.size(), 26u);
  }
}

TEST(Training, ThrowOnEarlyTerminationEndsAllRanks) {
  TrainingProgram program = UnevenInputs();
  program.join_throw = true;
  const auto endings = RunProgram(program, {});
  EXPECT_EQ(endings[0].outcome.status.message(), "Rank 0 exhausted all inputs.");
  EXPECT_EQ(endings[1].outcome.status.message(),
            "Detected at least one rank that exhausted inputs. Throwing across all ranks.");
  EXPECT_EQ(endings[0].outcome.where.at, TrainingPoint::At::kJoinExit);
  EXPECT_EQ(endings[1].outcome.where.at, TrainingPoint::At::kForward);
  EXPECT_EQ(endings[1].outcome.where.iteration, 5);
}

TEST(Training, ThrowWithEvenInputsEndsWell) {
  TrainingProgram program = UnevenInputs();
  program.join_throw = true;
  program.extra_inputs_per_rank = 0;
  for (const RankEnding& ending : RunProgram(program, {})) {
    EXPECT_TRUE(ending.outcome.status.ok()) << ending.outcome.status.message();
    EXPECT_EQ(ending.grad, 5);
  }
}

TEST(Training, NoSyncInsideJoin) {
  TrainingProgram program = UnevenInputs();
  program.model = "bn_4_4_2";
  program.inputs = {{3}};
  program.extra_inputs_per_rank = 3;
  program.no_sync_iterations = {4};
  const auto endings = RunProgram(program, {});
  for (const RankEnding& ending : endings) {
    EXPECT_TRUE(ending.outcome.status.ok()) << ending.outcome.status.message();
  }
  // Iteration 4 has no bucket, and iteration 5 no buffers.
  const auto& lines = endings[1].observer.lines;
  EXPECT_THAT(lines.at(5).calls, HasSubstr("BROADCAST[8]"));
  EXPECT_THAT(lines.at(5).calls, testing::Not(HasSubstr("ALLREDUCE[38]")));
  EXPECT_THAT(lines.at(6).calls, testing::Not(HasSubstr("BROADCAST[8]")));
  EXPECT_THAT(lines.at(6).calls, HasSubstr("ALLREDUCE[38]"));
}

TEST(Training, ARankThatJoinsAtOnceGivesPlainOrder) {
  TrainingProgram program = UnevenInputs();
  program.inputs = {{0, 3}};
  program.extra_inputs_per_rank = 0;
  const auto endings = RunProgram(program, {});
  EXPECT_TRUE(endings[0].outcome.status.ok()) << endings[0].outcome.status.message();
  EXPECT_TRUE(endings[1].outcome.status.ok()) << endings[1].outcome.status.message();
  EXPECT_EQ(endings[0].observer.purposes.size(), endings[1].observer.purposes.size());
}

TEST(Training, EpochsEvaluationAndBarriers) {
  TrainingProgram program;
  program.model = "bn_4_4_2";
  program.epochs = 2;
  program.inputs = {{3}};
  program.barrier = BarrierPlace::kInLoop;
  program.barrier_kind = BarrierKind::kAllReduce;
  program.evaluation = EvaluationProgram{.after_iteration = 1, .ranks = {0}, .inputs = {{2}}};
  const auto endings = RunProgram(program, {});
  // Rank 0's evaluation broadcasts what its peer's next forward waits for, so all is well.
  for (const RankEnding& ending : endings) {
    EXPECT_TRUE(ending.outcome.status.ok()) << ending.outcome.status.message();
    EXPECT_EQ(ending.outcome.iterations, 6);
    EXPECT_EQ(ending.outcome.where.at, TrainingPoint::At::kEnd);
  }
  std::vector<journal::Phase> phases = endings[0].observer.phases;
  phases.resize(8);
  EXPECT_THAT(phases, ElementsAre(journal::Phase::kConstruct, journal::Phase::kCompute,
                                  journal::Phase::kLoad, journal::Phase::kForward,
                                  journal::Phase::kBackward, journal::Phase::kBarrier,
                                  journal::Phase::kCompute, journal::Phase::kLoad));
}

TEST(Training, OneSidedUnusedParametersEndInAnError) {
  TrainingProgram program;
  program.model = "two_branch";
  program.inputs = {{2}};
  program.branch = {{'b', 'c'}};
  for (const RankEnding& ending : RunProgram(program, {})) {
    EXPECT_THAT(ending.outcome.status.message(),
                HasSubstr("Expected to have finished reduction in the prior iteration"));
  }
}

TEST(Training, ErrorsOfTheSurroundingsEndTheProgramThere) {
  class Thrower final : public TrainingSurroundings {
   public:
    Status Sleep(std::int64_t ns) override {
      slept_ns += ns;
      return OkStatus();
    }
    Status Reach(const TrainingPoint& point) override {
      if (point.at != TrainingPoint::At::kBackward || point.iteration < 2) return OkStatus();
      return SystemFailed("injected");
    }
    std::int64_t slept_ns = 0;
  };
  RunDdpWorld({}, [](EnginePorts ports) {
    TrainingProgram program;
    program.model = "linear_1_1";
    program.load_us = {{LoadTime{.mean_us = 250}}};
    auto module = MakeSmallModel(program.model, {}, ports.kernels);
    Thrower thrower;
    const TrainingOutcome outcome = RunTraining(program, **module, ports, thrower);
    EXPECT_EQ(outcome.status.message(), "injected");
    EXPECT_EQ(outcome.iterations, 2);
    EXPECT_EQ(thrower.slept_ns, 3 * 250'000);
    EXPECT_TRUE(outcome.engine->Synchronize().ok());
  });
}

TEST(Training, TheJournalSaysWhatEachCollectiveIsFor) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  constexpr std::size_t kCapacity = 1024;
  RunDdpWorld({}, [&](EnginePorts ports) {
    std::vector<Line> memory(journal::JournalBytes(kCapacity) / sizeof(Line) + 1);
    journal::JournalWriter journal =
        journal::JournalWriter::Create(std::as_writable_bytes(std::span(memory)), kCapacity);
    // The decorator owns what it decorates, so it gets a communicator of the same ranks.
    auto inner = ports.communicator.Split(0, 0, Deadline::AfterSeconds(20));
    ASSERT_TRUE(inner.ok());
    comm::RecordedCommunicator recorded(std::move(*inner), journal, 0);
    JournalObserver observer(recorded);
    EnginePorts own{recorded,      ports.device,        ports.kernels,
                    ports.compute, ports.communication, &observer};
    TrainingProgram program;
    program.model = "bn_4_4_2";
    program.inputs = {{2}};
    auto module = MakeSmallModel(program.model, {}, ports.kernels);
    NoSurroundings surroundings;
    ASSERT_TRUE(RunTraining(program, **module, own, surroundings).status.ok());
    std::vector<std::string> purposes;
    std::vector<journal::Phase> phases;
    const auto events =
        journal::JournalReader(std::as_bytes(std::span(memory)), kCapacity).Newest(kCapacity);
    for (const journal::JournalEvent& event : events.events) {
      if (event.kind == journal::EventKind::kPhase) phases.push_back(event.phase);
      if (event.kind != journal::EventKind::kEnd) continue;
      purposes.push_back(journal::Describe(journal::UnpackAnnotation(event.value)));
    }
    EXPECT_THAT(purposes,
                ElementsAre("constructor: parameter count", "constructor: parameter shapes",
                            "constructor: state 0", "constructor: state 1",
                            "buffers 0 of iteration 0", "buffers 1 of iteration 0",
                            "bucket 0 of iteration 0", "bucket order of rank 0 of iteration 1",
                            "bucket sizes of rank 0 of iteration 1", "buffers 0 of iteration 1",
                            "buffers 1 of iteration 1", "bucket 0 of iteration 1"));
    EXPECT_EQ(phases.front(), journal::Phase::kConstruct);
    EXPECT_EQ(phases.back(), journal::Phase::kFinalize);
  });
}

TEST(TrainingProgram, InputsFollowFromTheSampler) {
  TrainingProgram program;
  program.sampler = SamplerProgram{.samples = 10, .batch = 2};
  EXPECT_EQ(InputsOf(program, 0, 4), 2);  // 3 samples
  program.sampler->drop_last = true;
  EXPECT_EQ(InputsOf(program, 0, 4), 1);
  program.sampler.reset();
  program.inputs = {{4, 9}};
  EXPECT_EQ(InputsOf(program, 1, 2), 9);
}

TEST(TrainingProgram, WhatCannotBeRunIsRefusedInOneLine) {
  TrainingProgram program;
  program.inputs = {{1, 2, 3}};
  EXPECT_EQ(ValidateProgram(program, 2).message(),
            "inputs: 3 values for 2 ranks; give one, or one a rank");
  program.inputs = {{-1}};
  EXPECT_THAT(ValidateProgram(program, 2).message(), HasSubstr("rank 0 would have -1"));
  program.inputs = {{1}};
  program.evaluation = EvaluationProgram{.ranks = {2}};
  EXPECT_EQ(ValidateProgram(program, 2).message(),
            "eval.ranks: rank 2 does not exist; name 0 to 1");
  program.evaluation = EvaluationProgram{.ranks = {}, .inputs = {{1, 2, 3}}};
  EXPECT_EQ(ValidateProgram(program, 2).message(),
            "eval.inputs: 3 values for 2 ranks; give one, or one a rank");
  program.evaluation = EvaluationProgram{.ranks = {1}};
  EXPECT_TRUE(ValidateProgram(program, 2).ok());
}

}  // namespace
}  // namespace lockstep::ddp
