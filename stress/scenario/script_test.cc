// Steps and their mistakes, word by word, and of which programs the results are known. Loops and
// graph replays are read here too, because they become scripts or resemble them.
#include "stress/scenario/script.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {
namespace {

using ::testing::HasSubstr;
using Kind = ScriptStep::Kind;

const std::vector<ScriptCommunicator>& Communicators() {
  static const std::vector<ScriptCommunicator> communicators = {{"world", {0, 1, 2, 3}},
                                                                {"pair", {1, 3}}};
  return communicators;
}

ScriptStep ParsedStep(std::string_view text) {
  const Result<ScriptStep> step = ParseStep(text, Communicators());
  EXPECT_TRUE(step.ok()) << text << ": " << step.status().message();
  return step.ok() ? *step : ScriptStep();
}

std::string StepError(std::string_view text) {
  const Result<ScriptStep> step = ParseStep(text, Communicators());
  EXPECT_FALSE(step.ok()) << text;
  return step.ok() ? "" : step.status().message();
}

TEST(ParseStep, Collectives) {
  const ScriptStep reduce = ParsedStep("all_reduce world f32 1024 op=max");
  EXPECT_EQ(reduce.kind, Kind::kCollective);
  EXPECT_EQ(reduce.operation.collective, collective::Collective::kAllReduce);
  EXPECT_EQ(reduce.operation.count, 1024);
  EXPECT_EQ(reduce.operation.reduction, collective::Reduction::kMax);
  const ScriptStep broadcast = ParsedStep("  repeat 10 broadcast  pair bf16 16 root=1 ");
  EXPECT_EQ(broadcast.times, 10);
  EXPECT_EQ(broadcast.communicator, 1u);
  EXPECT_EQ(broadcast.operation.root, 1);
  EXPECT_EQ(broadcast.operation.type, collective::DataType::kBf16);
  EXPECT_EQ(ParsedStep("send world i64 4 peer=3").operation.root, 3);
  EXPECT_EQ(ParsedStep("barrier pair").operation.collective, collective::Collective::kBarrier);
  EXPECT_EQ(ParsedStep("churn world f32 8").kind, Kind::kChurn);
}

TEST(ParseStep, OtherSteps) {
  EXPECT_EQ(ParsedStep("sleep 100ms").ns, 100'000'000);
  EXPECT_EQ(ParsedStep("compute 20ms").kind, Kind::kCompute);
  EXPECT_EQ(ParsedStep("load 50ms").kind, Kind::kLoad);
  EXPECT_EQ(ParsedStep("exit 3").exit_code, 3);
  EXPECT_EQ(ParsedStep("throw").kind, Kind::kThrow);
  EXPECT_EQ(ParsedStep("hang").kind, Kind::kHang);
  EXPECT_EQ(ParsedStep("finish").kind, Kind::kFinish);
}

TEST(ParseStep, MistakesSayWhatIsRight) {
  EXPECT_THAT(StepError("all_reduse world f32 8"), HasSubstr("did you mean 'all_reduce'"));
  EXPECT_THAT(StepError("all_reduce wrld f32 8"), HasSubstr("did you mean 'world'"));
  EXPECT_THAT(StepError("all_reduce world f31 8"), HasSubstr("f31"));
  EXPECT_THAT(StepError("all_reduce world f32 -8"), HasSubstr("no number of elements"));
  EXPECT_THAT(StepError("all_reduce world f32"), HasSubstr("incomplete"));
  EXPECT_THAT(StepError("all_reduce world f32 8 root=1"), HasSubstr("no option of all_reduce"));
  EXPECT_THAT(StepError("broadcast pair f32 8 root=2"), HasSubstr("2 ranks"));
  EXPECT_THAT(StepError("sleep soon"), HasSubstr("soon"));
  EXPECT_THAT(StepError("exit 300"), HasSubstr("0 to 255"));
  EXPECT_THAT(StepError("repeat 2 repeat 2 hang"), HasSubstr("repeat"));
  EXPECT_THAT(StepError("hang 3"), HasSubstr("stands alone"));
  EXPECT_THAT(StepError("churn"), HasSubstr("incomplete"));
  EXPECT_THAT(StepError(""), HasSubstr("empty"));
}

ScriptProgram ScriptOf(const std::string& workload) {
  const Result<Scenario> scenario =
      ParseScenario("name = \"a/b\"\nranks = 2\n[workload]\n" + workload, "a.toml");
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? std::get<ScriptProgram>(scenario->workload) : ScriptProgram();
}

TEST(PromisesRightData, OnlyWhereAllCallTheSameToTheEnd) {
  const ScriptProgram same = ScriptOf(
      "kind = \"script\"\nrounds = 3\n"
      "default = [\"sleep 1ms\", \"repeat 2 all_reduce world f32 4\", \"barrier world\"]\n");
  EXPECT_TRUE(PromisesRightData(same, 0));
  EXPECT_EQ(CollectivesOf(same, 1), 9);
  const ScriptProgram once = ScriptOf(
      "kind = \"script\"\nrounds = 20\ndefault = [\"all_reduce world f32 4\", \"finish\"]\n");
  EXPECT_EQ(CollectivesOf(once, 1), 1);
  EXPECT_TRUE(HasOneRound(once, 1));
  const ScriptProgram other = ScriptOf(
      "kind = \"script\"\nrank.0 = [\"all_reduce world f32 4\"]\n"
      "rank.1 = [\"all_reduce world f32 5\"]\n");
  EXPECT_FALSE(PromisesRightData(other, 0));
  const ScriptProgram raises = ScriptOf(
      "kind = \"script\"\nrank.0 = [\"all_reduce world f32 4\"]\n"
      "rank.1 = [\"all_reduce world f32 4\", \"throw\"]\n");
  EXPECT_FALSE(PromisesRightData(raises, 0));
  EXPECT_EQ(same.promised, std::vector<bool>{true});
  EXPECT_EQ(other.promised, std::vector<bool>{false});
}

TEST(PromisesRightData, MessagesStandApartFromCollectives) {
  const auto with = [](const std::string& sends, const std::string& receives) {
    return ScriptOf("kind = \"script\"\nrank.0 = [\"all_reduce world f32 4\", " + sends +
                    "]\nrank.1 = [\"all_reduce world f32 4\", " + receives + "]\n");
  };
  const ScriptProgram pair = with("\"send world f32 4 peer=1\"", "\"recv world f32 4 peer=0\"");
  EXPECT_TRUE(PromisesRightData(pair, 0));
  EXPECT_TRUE(PromisesRightMessages(pair, 0, 0, 1));
  EXPECT_TRUE(PromisesRightMessages(pair, 0, 1, 0));  // there are none
  const std::string send = "\"send world f32 4 peer=1\"";
  for (const char* receives : {"\"recv world f32 8 peer=0\"", "\"recv world i32 4 peer=0\"",
                               "\"repeat 2 recv world f32 4 peer=0\"", "\"barrier world\""}) {
    EXPECT_FALSE(PromisesRightMessages(with(send, receives), 0, 0, 1)) << receives;
  }
  const ScriptProgram raises = with(send, "\"recv world f32 4 peer=0\", \"throw\"");
  EXPECT_FALSE(PromisesRightMessages(raises, 0, 0, 1));
}

TEST(Loops, AreScripts) {
  const ScriptProgram loop = ScriptOf(
      "kind = \"all_reduce_loop\"\nsizes = [8, \"64K\"]\nrounds = 7\ncompute_us = [0, 500]\n");
  EXPECT_EQ(loop.rounds, 7);
  ASSERT_EQ(loop.steps[0].size(), 2u);
  ASSERT_EQ(loop.steps[1].size(), 3u);
  EXPECT_EQ(loop.steps[1][0].ns, 500'000);
  EXPECT_EQ(loop.steps[0][1].operation.count, 16'384);
  EXPECT_TRUE(PromisesRightData(loop, 0));
}

TEST(GraphReplay, NeedsNcclWhetherItSaysSoOrNot) {
  const auto read = [](const std::string& workload, const std::string& more) {
    return ParseScenario(
        "name = \"a/b\"\nranks = 2\n[workload]\nkind = \"graph_replay\"\n" + workload + more,
        "a.toml");
  };
  const Result<Scenario> scenario =
      read("sizes = [8, \"64K\"]\n", "[[fault]]\nkind = \"stop\"\nrank = 1\nat = \"replay:4\"\n");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_EQ(scenario->requirement, "nccl");
  const auto& program = std::get<GraphReplayProgram>(scenario->workload);
  ASSERT_EQ(program.operations.size(), 2u);
  EXPECT_EQ(program.operations[1].count, 16'384);
  EXPECT_EQ(program.rounds, 20);
  EXPECT_THAT(std::string(read("rounds = 1\n", "").status().message()), HasSubstr("rounds"));
}

}  // namespace
}  // namespace lockstep::stress::scenario
