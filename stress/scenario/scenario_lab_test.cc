// Groups, streams, loading and races in scenario files.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "stress/scenario/scenario.h"

namespace lockstep::stress::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario Parse(const std::string& workload, int ranks = 3) {
  const Result<Scenario> scenario =
      ParseScenario("name = \"a/b\"\nranks = \"any\"\n" + workload, "a.toml", {.ranks = ranks});
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? *scenario : Scenario();
}

std::string ErrorOf(const std::string& workload) {
  const Result<Scenario> scenario =
      ParseScenario("name = \"a/b\"\nranks = 3\n" + workload, "a.toml");
  EXPECT_FALSE(scenario.ok());
  return scenario.ok() ? "" : scenario.status().message();
}

TEST(Script, StreamsAndWaits) {
  const Scenario scenario = Parse(R"([workload]
kind = "script"
communicators = { a = [0, 1], b = [0, 2] }
create.2 = ["b", "a"]
default = ["compute 1ms stream=s"]
rank.0 = ["all_reduce a f32 8 stream=s", "broadcast b f32 8 root=1 stream=t wait=s", "wait t"]
)");
  const auto& program = std::get<ScriptProgram>(scenario.workload);
  EXPECT_TRUE(UsesStreams(program));
  ASSERT_EQ(program.steps[0].size(), 3u);
  EXPECT_EQ(program.steps[0][0].stream, "s");
  EXPECT_EQ(program.steps[0][1].wait, "s");
  EXPECT_EQ(program.steps[0][1].operation.root, 1);
  EXPECT_EQ(program.steps[0][2].kind, ScriptStep::Kind::kWait);
  EXPECT_EQ(program.steps[1][0].stream, "s");
  EXPECT_THAT(program.creation[0], ElementsAre(1, 2));
  EXPECT_THAT(program.creation[2], ElementsAre(2, 1));
  // Of what is made first, rank 2 thinks that it is b.
  const std::vector<ScriptCommunicator> made = MadeCommunicators(program);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].name, "a or b");
  EXPECT_THAT(made[0].members, ElementsAre(0, 1, 2));
  EXPECT_THAT(made[1].members, ElementsAre(0));
}

TEST(Groups, EveryRankInItsOrder) {
  const Scenario scenario = Parse(R"([workload]
kind = "groups"
communicators = { a = [0, 1], b = [1, 2] }
order = ["a", "world", "b"]
rank.1 = ["b", "a"]
streams = "each"
sizes = [8]
)");
  const auto& program = std::get<ScriptProgram>(scenario.workload);
  const auto order = [&](std::size_t rank) {
    std::vector<std::string> names;
    for (const ScriptStep& step : program.steps[rank]) names.push_back(step.stream);
    return names;
  };
  EXPECT_THAT(order(0), ElementsAre("a", "world"));
  EXPECT_THAT(order(1), ElementsAre("b", "a"));
  EXPECT_THAT(order(2), ElementsAre("world", "b"));
  EXPECT_EQ(program.steps[0][0].operation.count, 2);
}

TEST(Groups, ARootIsOfEveryCommunicator) {
  const std::string text = R"([workload]
kind = "groups"
communicators = { pair = [0, 1] }
collective = "broadcast"
root = 2
)";
  EXPECT_THAT(ErrorOf(text), HasSubstr("workload.root: names none of the 2 ranks of communicator "
                                       "'pair'; write root = 0, or leave it out of order"));
  const Scenario world = Parse(text + "order = [\"world\"]\n");
  EXPECT_EQ(std::get<ScriptProgram>(world.workload).steps[0][0].operation.root, 2);
}

TEST(Lab, LoadingAndRaces) {
  const Scenario loading = Parse(R"([workload]
kind = "sharded_loading"
samples = [24, 48, 24]
slow_down = [1, 10, 1]
between = "none"
[expect.any]
figures = { batches = 3, samples = [1, 2.5] }
)");
  const auto& program = std::get<LoadingProgram>(loading.workload);
  EXPECT_EQ(program.samples.At(1), 48);
  EXPECT_EQ(program.slow_down.At(1), 10);
  EXPECT_EQ(program.between, LoadingProgram::Between::kNone);
  const auto& figures = loading.expect.at("any").figures;
  EXPECT_EQ(figures.at("batches"), std::make_pair(3.0, 3.0));
  EXPECT_EQ(figures.at("samples"), std::make_pair(1.0, 2.5));
  const Scenario race =
      Parse("[workload]\nkind = \"stream_race\"\npattern = \"buffer_reuse\"\nguard = \"event\"\n");
  EXPECT_EQ(std::get<StreamRaceProgram>(race.workload).pattern, RacePattern::kBufferReuse);
  EXPECT_EQ(std::get<StreamRaceProgram>(race.workload).guard, RaceGuard::kEvent);
}

TEST(Lab, MistakesSayWhatIsRight) {
  const std::string script = "[workload]\nkind = \"script\"\ncommunicators = { a = [0, 1] }\n";
  EXPECT_THAT(ErrorOf(script + "rank.0 = [\"barrier a stream=s\", \"barrier a\"]\n"),
              HasSubstr("rank 0 calls 'a' on two streams; write one stream"));
  EXPECT_THAT(ErrorOf(script + "rank.0 = [\"barrier a wait=t\"]\n"),
              HasSubstr("waits for stream 't' and puts nothing on it"));
  EXPECT_THAT(ErrorOf(script + "rank.0 = [\"churn a f32 8 stream=s\"]\n"), HasSubstr("no streams"));
  EXPECT_THAT(ErrorOf(script + "create.0 = [\"a\", \"a\"]\ndefault = []\n"), HasSubstr("once"));
  EXPECT_THAT(ErrorOf(script + "create.0 = []\nrank.0 = [\"barrier a\"]\n"),
              HasSubstr("name it in create.0"));
  EXPECT_THAT(ErrorOf(script + "rank.2 = [\"barrier a\"]\n"), HasSubstr("make it a member"));
  EXPECT_THAT(ErrorOf(script + "rank.1 = [\"send a f32 8 peer=1\"]\n"),
              HasSubstr("peer=1 of 'a' is rank 1 itself; name another rank"));
  EXPECT_THAT(ErrorOf("[workload]\nkind = \"stream_race\"\npattern = \"buffer_reus\"\n"),
              HasSubstr("did you mean 'buffer_reuse'"));
  EXPECT_THAT(ErrorOf("[workload]\nkind = \"all_reduce_loop\"\nround = 3\n"),
              HasSubstr("did you mean 'rounds'"));
}

}  // namespace
}  // namespace lockstep::stress::scenario
