// What each library makes of different calls: rows are facts of its documents or of experiments.
#include "core/verdict/semantics.h"

#include "core/verdict/testing/history.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::verdict {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

collective::Operation Max(collective::Operation operation) {
  operation.reduction = collective::Reduction::kMax;
  return operation;
}
collective::Operation Broadcast(std::int64_t count, int root = 0) {
  return {.collective = collective::Collective::kBroadcast, .count = count, .root = root};
}

struct Row {
  const char* what;
  collective::Operation a;
  collective::Operation b;
  Effect nccl;
  Effect mpi;
  Effect gloo;
};

TEST(Semantics, EffectsOfDifferentCalls) {
  constexpr Effect kStops = Effect::kStops, kWrong = Effect::kWrongData;
  constexpr Effect kOpen = Effect::kUndefined;
  const Row rows[] = {
      // PyTorch's barrier on NCCL is an all-reduce of one f32: both go on.
      {"barrier and its own shape", Barrier(), AllReduce(1), kWrong, kStops, kStops},
      {"barrier and a small bucket", Barrier(), AllReduce(2), kWrong, kStops, kStops},
      {"barrier and a bucket", Barrier(), AllReduce(1024), kOpen, kStops, kStops},
      {"all-reduce and broadcast", AllReduce(8), Broadcast(8), kOpen, kOpen, kStops},
      {"counts", AllReduce(8), AllReduce(9), kOpen, kOpen, kOpen},
      {"types of one size", AllReduce(8), AllReduce(8, collective::DataType::kI32), kWrong, kWrong,
       kWrong},
      {"types of two sizes", AllReduce(8), AllReduce(8, collective::DataType::kF64), kOpen, kOpen,
       kOpen},
      {"reductions", AllReduce(8), Max(AllReduce(8)), kWrong, kWrong, kWrong},
      {"roots", Broadcast(8), Broadcast(8, 1), kOpen, kOpen, kOpen},
  };
  for (const Row& row : rows) {
    EXPECT_FALSE(SameCall(row.a, row.b)) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("nccl"), row.a, row.b), row.nccl) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("sim_nccl"), row.b, row.a), row.nccl) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("mpi"), row.a, row.b), row.mpi) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("gloo"), row.a, row.b), row.gloo) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("null"), row.a, row.b), kWrong) << row.what;
    EXPECT_EQ(EffectOf(SemanticsOf("another"), row.a, row.b), kStops) << row.what;
  }
}

TEST(Semantics, TheSameProgramHangsOnOneLibraryAndIsSilentlyWrongOnAnother) {
  const std::vector<RankEvidence> evidence = {After49(0).Enters(Barrier()),
                                              After49(1).Enters(AllReduce(1))};
  const auto judge = [&](const char* backend) {
    Setting setting;
    setting.deadline_seconds = kDeadline;
    setting.backend = backend;
    const Judgement judgement = Judge(evidence, setting);
    ExpectReadable(judgement);
    EXPECT_EQ(judgement.findings.at(0).cause, Cause::kCollectiveMismatch);
    EXPECT_TRUE(judgement.findings[0].proved);
    return judgement;
  };
  const Judgement gloo = judge("gloo");
  EXPECT_THAT(OutcomesOf(gloo), ElementsAre(Outcome::kHung, Outcome::kHung));
  EXPECT_THAT(gloo.findings[0].message, HasSubstr("gloo pairs calls of one kind only"));
  // No false alarm: on NCCL these two leave it, whatever they then hold.
  const Judgement nccl = judge("nccl");
  EXPECT_THAT(OutcomesOf(nccl), ElementsAre(Outcome::kFinished, Outcome::kFinished));
  EXPECT_THAT(nccl.findings[0].message, HasSubstr("without a word"));
}

TEST(Semantics, WhatIsNotCertainNeedsTheDeadlineToBeCalledHung) {
  Setting setting;
  setting.deadline_seconds = kDeadline;
  setting.backend = "mpi";
  const auto outcomes = [&](double silent) {
    return OutcomesOf(Judge({After49(0).Enters(AllReduce(8)).Silent(silent),
                             After49(1).Enters(AllReduce(9)).Silent(silent)},
                            setting));
  };
  EXPECT_THAT(outcomes(0.1), ElementsAre(Outcome::kFinished, Outcome::kFinished));
  EXPECT_THAT(outcomes(6), ElementsAre(Outcome::kHung, Outcome::kHung));
}

}  // namespace
}  // namespace lockstep::verdict
