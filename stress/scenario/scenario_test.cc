// Scenario files as users write them. One says everything; each of the others has a mistake whose
// message must name line, key and remedy.
#include "stress/scenario/scenario.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

namespace lockstep::stress::scenario {
namespace {

// Five lines, then a workload's further ones.
const std::string kHead =
    "name = \"test/one\"\nranks = 2\n[workload]\nkind = \"ddp_training\"\nmodel = \"bn_4_4_2\"\n";

std::string MessageOf(const std::string& text) {
  const auto scenario = ParseScenario(text, "t.toml");
  if (scenario.ok()) return "ok";
  EXPECT_EQ(scenario.status().code(), StatusCode::kInvalidInput);
  EXPECT_EQ(scenario.status().message().find('\n'), std::string::npos);
  return scenario.status().message();
}

ddp::TrainingProgram ProgramOf(const std::string& lines, const ScenarioOptions& options = {}) {
  auto scenario = ParseScenario(kHead + lines, "t.toml", options);
  EXPECT_TRUE(scenario.ok()) << scenario.status().message();
  return scenario.ok() ? std::get<ddp::TrainingProgram>(scenario->workload)
                       : ddp::TrainingProgram();
}

TEST(ScenarioTest, DefaultsAreThoseOfTheFormat) {
  const ddp::TrainingProgram program = ProgramOf("");
  EXPECT_EQ(program.model, "bn_4_4_2");
  EXPECT_EQ(program.epochs, 1);
  EXPECT_EQ(ddp::InputsOf(program, 1, 2), 5);
  EXPECT_FALSE(program.join);
  EXPECT_TRUE(program.divide_by_initial_world_size);
  EXPECT_TRUE(program.broadcast_buffers);
  EXPECT_FALSE(program.buckets.cap_bytes);
  EXPECT_FALSE(program.evaluation);
  EXPECT_EQ(program.barrier, ddp::BarrierPlace::kNone);
}

TEST(ScenarioTest, EveryKeyArrives) {
  const ddp::TrainingProgram program = ProgramOf(R"(epochs = 2
inputs = [3, 4]
join = true
join_throw = true
divide_by_initial_world_size = false
barrier = "after_loop"
barrier_kind = "all_reduce"
broadcast_buffers = false
find_unused_parameters = true
static_graph = true
no_sync_iterations = [0, 2]
bucket_cap_mb = 0.5
first_bucket_mb = 2
comm_hook = "powersgd"
power_sgd = { rank = 2, start_iteration = 3 }
compute_us = 100
load_us = [10, 20]
sync_batch_norm = true
after_finish = "linger"
[workload.eval]
after_iteration = 1
ranks = [1]
through = "module"
grad = true
train_mode = true
inputs = 7
then = "end"
)");
  EXPECT_EQ(program.epochs, 2);
  EXPECT_EQ(ddp::InputsOf(program, 0, 2), 3);
  EXPECT_EQ(ddp::InputsOf(program, 1, 2), 4);
  EXPECT_TRUE(program.join && program.join_throw && program.find_unused_parameters);
  EXPECT_FALSE(program.divide_by_initial_world_size || program.broadcast_buffers);
  EXPECT_TRUE(program.static_graph && program.sync_batch_norm);
  EXPECT_EQ(program.barrier, ddp::BarrierPlace::kAfterLoop);
  EXPECT_EQ(program.barrier_kind, ddp::BarrierKind::kAllReduce);
  EXPECT_EQ(program.no_sync_iterations, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(program.buckets.cap_bytes, 512 * 1024);
  EXPECT_EQ(program.buckets.first_cap_bytes, 2 * 1024 * 1024);
  EXPECT_EQ(program.comm_hook, ddp::CommHook::kPowerSgd);
  EXPECT_EQ(program.power_sgd.rank, 2);
  EXPECT_EQ(program.power_sgd.start_iteration, 3);
  EXPECT_EQ(program.compute_us.At(1), 100);
  EXPECT_EQ(program.load_us.At(1).mean_us, 20);
  EXPECT_EQ(program.after_finish, ddp::AfterFinish::kLinger);
  ASSERT_TRUE(program.evaluation);
  EXPECT_EQ(program.evaluation->ranks, std::vector<int>{1});
  EXPECT_EQ(program.evaluation->through, ddp::EvaluationProgram::Through::kModule);
  EXPECT_EQ(program.evaluation->then, ddp::EvaluationProgram::Then::kEnd);
  EXPECT_TRUE(program.evaluation->grad && program.evaluation->train_mode);
  EXPECT_EQ(program.evaluation->inputs.values, (std::vector<std::int64_t>{7, 7}));
}

TEST(ScenarioTest, EvaluationInputsAreOfAllRanksWhenTheyAreAList) {
  const ddp::TrainingProgram uneven = ProgramOf("eval = { inputs = [3, 0] }\n");
  ASSERT_TRUE(uneven.evaluation);
  EXPECT_EQ(uneven.evaluation->inputs.values, (std::vector<std::int64_t>{3, 0}));
  EXPECT_TRUE(uneven.evaluation->ranks.empty());
  EXPECT_EQ(ProgramOf("eval = { inputs = 3 }\n").evaluation->ranks, std::vector<int>{0});
}

TEST(ScenarioTest, PowerSgdThatKeepsNothingMayStartAtOnce) {
  const ddp::TrainingProgram program = ProgramOf(
      "comm_hook = \"powersgd\"\n"
      "power_sgd = { start_iteration = 0, error_feedback = false, warm_start = false }\n");
  EXPECT_EQ(program.power_sgd.start_iteration, 0);
}

TEST(ScenarioTest, InputsFollowFromExtraOrTheSampler) {
  const ddp::TrainingProgram extra = ProgramOf("inputs = 2\nextra_inputs_per_rank = 3\n");
  EXPECT_EQ(ddp::InputsOf(extra, 0, 2), 2);
  EXPECT_EQ(ddp::InputsOf(extra, 1, 2), 5);
  const ddp::TrainingProgram sampler = ProgramOf("sampler = { samples = 101, batch = 10 }\n");
  EXPECT_EQ(ddp::InputsOf(sampler, 0, 2), 6);  // 51 samples
}

TEST(ScenarioTest, FaultsAndExpectations) {
  const auto scenario = ParseScenario(kHead + R"(
[[fault]]
kind = "stop"
rank = 1
at = "iteration:3"
duration = "250ms"
[[fault]]
kind = "kill"
ranks = [0, 1]
at = "time:0.5s"
[expect.gloo]
ranks = [["hung", "failed"], "finished"]
cause = "rank_stopped"
culprits = [1]
[expect.any]
ranks = ["finished", "finished"]
)",
                                      "t.toml");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  ASSERT_EQ(scenario->faults.size(), 2u);
  EXPECT_EQ(scenario->faults[0].kind, "stop");
  EXPECT_EQ(scenario->faults[0].ranks, std::vector<int>{1});
  EXPECT_EQ(scenario->faults[0].at, "iteration:3");
  EXPECT_EQ(scenario->faults[0].duration_seconds, 0.25);
  EXPECT_EQ(scenario->faults[1].ranks, (std::vector<int>{0, 1}));
  const Expectation& gloo = scenario->expect.at("gloo");
  EXPECT_EQ(gloo.ranks[0], (std::vector<std::string>{"hung", "failed"}));
  EXPECT_EQ(gloo.ranks[1], (std::vector<std::string>{"finished"}));
  EXPECT_EQ(gloo.cause, verdict::Cause::kRankStopped);
  EXPECT_EQ(gloo.culprits, std::vector<int>{1});
  EXPECT_EQ(scenario->expect.count("any"), 1u);
}

TEST(ScenarioTest, NumberOfRanks) {
  const std::string tail = "\n[workload]\nkind = \"ddp_training\"\n";
  const auto ranks = [&](const std::string& line, const ScenarioOptions& options = {}) {
    const auto scenario = ParseScenario("name = \"a/b\"\nranks = " + line + tail, "t", options);
    EXPECT_TRUE(scenario.ok()) << scenario.status().message();
    return scenario.ok() ? scenario->ranks : -1;
  };
  EXPECT_EQ(ranks("3"), 3);
  EXPECT_EQ(ranks("[4, 2]"), 4);
  EXPECT_EQ(ranks("\"any\""), 2);
  EXPECT_EQ(ranks("3", {.ranks = 8}), 8);
}

TEST(ScenarioTest, TorchDecidesWhatTheFileLeavesOpen) {
  const std::string lines = "bucket_cap_mb = 5\n";
  EXPECT_EQ(ProgramOf(lines).buckets.rules, ddp::TorchRules::k2_6);
  EXPECT_EQ(ProgramOf(lines, {.torch = ddp::TorchRules::k1_13}).buckets.rules,
            ddp::TorchRules::k1_13);
  EXPECT_FALSE(ProgramOf(lines).buckets.first_cap_bytes);
}

TEST(ScenarioTest, TheFirstLinesMistakeIsTold) {
  EXPECT_EQ(MessageOf(kHead + "epochs = 0\njoin = 1\ninputs = -1\n"),
            "t.toml:6: key workload.epochs: 0 is out of range; it must be from 1 to 1000000");
}

TEST(ScenarioTest, FilesThatCannotBeRead) {
  EXPECT_EQ(LoadScenario("no/such.toml").status().message(),
            "'no/such.toml' does not exist; give the path of a scenario");
  EXPECT_EQ(LoadScenario("/").status().message(), "'/' is not a file; give the path of a scenario");
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/large.toml";
  std::ofstream(path) << std::string(2 << 20, '#');
  EXPECT_EQ(LoadScenario(path).status().message(),
            "'" + path + "' is larger than 1 MiB, which no scenario is");
}

TEST(ScenarioTest, MistakesOfTheWholeFile) {
  const std::string tail = "[workload]\nkind = \"ddp_training\"\n";
  EXPECT_EQ(MessageOf("name = \n"),
            "t.toml:1: not TOML: Error while parsing key-value pair: expected value, saw "
            "'\\n'; mend this line");
  EXPECT_EQ(MessageOf("ranks = 2\n" + tail),
            "t.toml:1: key name: missing; write name = \"folder/name\"");
  EXPECT_EQ(MessageOf("name = \"\"\nranks = 2\n" + tail),
            "t.toml:1: key name: empty; write name = \"folder/name\"");
  EXPECT_EQ(MessageOf("name = \"a\"\n" + tail),
            "t.toml:1: key ranks: missing; write a number, a list of numbers or \"any\"");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 0\n" + tail),
            "t.toml:2: key ranks: 0 is out of range; it must be from 1 to 65536");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = []\n" + tail),
            "t.toml:2: key ranks: an empty list; write a number, a list of numbers or "
            "\"any\"");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = \"all\"\n" + tail),
            "t.toml:2: key ranks: a string; write a number, a list of numbers or \"any\"");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2.5\n" + tail),
            "t.toml:2: key ranks: a number with a fraction; write a number, a list of "
            "numbers or \"any\"");
  EXPECT_EQ(MessageOf("name = 7\nranks = 2\n" + tail),
            "t.toml:1: key name: an integer; write a string in quotes");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2\n"),
            "t.toml:1: key workload: missing; write a [workload] table");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2\nworkload = 3\n"),
            "t.toml:3: key workload: an integer; write a table");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2\n[workload]\nmodel = \"x\"\n"),
            "t.toml:3: key workload.kind: missing; write kind = \"ddp_training\"");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2\n[workload]\nkind = \"ddp_trainig\"\n"),
            "t.toml:4: key workload.kind: 'ddp_trainig' is unknown; did you mean "
            "'ddp_training'?");
  EXPECT_EQ(MessageOf("name = \"a\"\nranks = 2\ndescripton = \"x\"\n" + tail),
            "t.toml:3: key descripton: unknown; did you mean 'description'?");
}

struct Mistake {
  const char* lines;
  const char* message;  // after "t.toml:"
};

class MistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsToldInOneLine) {
  EXPECT_EQ(MessageOf(kHead + GetParam().lines), std::string("t.toml:") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    OfTheWorkload, MistakeTest,
    testing::ValuesIn(std::vector<Mistake>{
        {"inptus = 3", "6: key workload.inptus: unknown; did you mean 'inputs'?"},
        {"zzz = 3",
         "6: key workload.zzz: unknown; keys here: kind, model, epochs, inputs, "
         "extra_inputs_per_rank, sampler, join, join_throw, "
         "divide_by_initial_world_size, broadcast_buffers, find_unused_parameters, "
         "static_graph, sync_batch_norm, zero_grad, linear_rows, bucket_cap_mb, first_bucket_mb, "
         "comm_hook, power_sgd, branch, no_sync_iterations, eval, barrier, "
         "barrier_kind, compute_us, load_us, after_finish"},
        {"inputs = \"3\"",
         "6: key workload.inputs: a string; write an integer, or a list with one for "
         "each rank"},
        {"inputs = -1",
         "6: key workload.inputs: -1 is out of range; it must be from 0 to 1000000000"},
        {"inputs = 2.5",
         "6: key workload.inputs: a number with a fraction; write an integer, or a list "
         "with one for each rank"},
        {"inputs = [1, 2, 3]",
         "6: key workload.inputs: a list of 3 for 2 ranks; write 2 items, or one value "
         "for all"},
        {"inputs = [1, \"x\"]",
         "6: key workload.inputs: a string; write an integer, or a list with one for "
         "each rank"},
        {"epochs = 0", "6: key workload.epochs: 0 is out of range; it must be from 1 to 1000000"},
        {"inputs = [1, 2]\nextra_inputs_per_rank = 1",
         "7: key workload.extra_inputs_per_rank: inputs already has a number for each "
         "rank; remove it"},
        {"join = 1", "6: key workload.join: an integer; write true or false"},
        {"join_throw = true", "6: key workload.join_throw: needs join; write join = true"},
        {"divide_by_initial_world_size = false",
         "6: key workload.divide_by_initial_world_size: false needs join; write join = "
         "true"},
        {"barrier = \"in_lop\"",
         "6: key workload.barrier: 'in_lop' is unknown; did you mean 'in_loop'?"},
        {"barrier_kind = \"native\"",
         "6: key workload.barrier_kind: there is no barrier; write barrier = "
         "\"in_loop\" or remove it"},
        {"bucket_cap_mb = \"25\"", "6: key workload.bucket_cap_mb: a string; write a number"},
        {"bucket_cap_mb = 0",
         "6: key workload.bucket_cap_mb: 0 is less than a byte; write MiB, as 25.0"},
        {"first_bucket_mb = -1.5",
         "6: key workload.first_bucket_mb: -1.5 is out of range; it must be from 0 to "
         "1048576"},
        {"comm_hook = \"fp8\"",
         "6: key workload.comm_hook: 'fp8' is unknown; did you mean 'fp16'?"},
        {"power_sgd = { rank = 2 }",
         "6: key workload.power_sgd: is for comm_hook = \"powersgd\"; write that or "
         "remove it"},
        {"comm_hook = \"powersgd\"\npower_sgd = { rank = 0 }",
         "7: key workload.power_sgd.rank: 0 is out of range; it must be from 1 to "
         "1048576"},
        {"comm_hook = \"powersgd\"\npower_sgd = { start_iteration = 1, warm_start = false }",
         "7: key workload.power_sgd.start_iteration: 1 is too early for error_feedback and "
         "warm_start; write 2 or more, or set both to false"},
        {"branch = \"c\"",
         "6: key workload.branch: bn_4_4_2 has no branches; use model = \"two_branch\""},
        {"no_sync_iterations = [5]",
         "6: key workload.no_sync_iterations: there is no iteration 5; the last is 4"},
        {"no_sync_iterations = 1",
         "6: key workload.no_sync_iterations: an integer; write a list of integers"},
        {"no_sync_iterations = [-1]",
         "6: key workload.no_sync_iterations: -1 is out of range; it must be from 0 to "
         "1000000000"},
        {"compute_us = -3",
         "6: key workload.compute_us: -3 is out of range; it must be from 0 to "
         "1000000000000"},
        {"load_us = { kind = \"normal\", mean = 3 }",
         "6: key workload.load_us.kind: 'normal' is unknown; choose from constant, "
         "uniform, exponential"},
        {"load_us = { kind = \"uniform\" }",
         "6: key workload.load_us.mean: missing; write microseconds"},
        {"load_us = { kind = \"uniform\", mean = 3, spread = 4 }",
         "6: key workload.load_us.spread: exceeds mean; no time is negative"},
        {"after_finish = \"stay\"",
         "6: key workload.after_finish: 'stay' is unknown; choose from exit, linger"},
        {"sampler = { batch = 4 }",
         "6: key workload.sampler.samples: missing; write the size of the dataset"},
        {"sampler = { samples = 4 }\ninputs = 3",
         "7: key workload.inputs: inputs follow from sampler; remove one of them"},
        {"sampler = { samples = 4, suffle = true }",
         "6: key workload.sampler.suffle: unknown; did you mean 'shuffle'?"},
        {"sampler = 4", "6: key workload.sampler: an integer; write a table"},
        {"eval = { after_iteration = 5 }",
         "6: key workload.eval.after_iteration: there is no iteration 5; the last is 4"},
        {"eval = { ranks = [2] }",
         "6: key workload.eval.ranks: 2 is out of range; it must be from 0 to 1"},
        {"eval = { ranks = [] }",
         "6: key workload.eval.ranks: an empty list; name ranks, or remove eval"},
        {"eval = { inputs = [3, 2], ranks = [0] }",
         "6: key workload.eval.inputs: a list is of all ranks; remove ranks, write 0 for those "
         "that do not"},
        {"eval = { inputs = [3, -1] }",
         "6: key workload.eval.inputs: -1 is out of range; it must be from 0 to 1000000000"},
        {"eval = { inputs = 0 }",
         "6: key workload.eval.inputs: 0 is out of range; it must be from 1 to 1000000000"},
        {"eval = { inputs = [1, 2, 3] }",
         "6: key workload.eval.inputs: a list of 3 for 2 ranks; write 2 items, or one value for "
         "all"},
        {"eval = { through = \"wrapper\" }",
         "6: key workload.eval.through: 'wrapper' is unknown; choose from ddp, module"},
        {"eval = { then = \"stop\" }",
         "6: key workload.eval.then: 'stop' is unknown; choose from train, barrier, end"},
        {"model = \"two_branch\"",
         "6: not TOML: Error while parsing key-value pair: cannot redefine existing "
         "string 'model'; mend this line"},
    }));

INSTANTIATE_TEST_SUITE_P(
    OfFaultsAndExpectations, MistakeTest,
    testing::ValuesIn(std::vector<Mistake>{
        {"[[fault]]\nkind = \"kil\"\nrank = 1\nat = \"init\"",
         "7: key fault[0].kind: 'kil' is unknown; did you mean 'kill'?"},
        {"[[fault]]\nrank = 1\nat = \"init\"",
         "6: key fault[0].kind: missing; a fault needs a kind, as \"kill\""},
        {"[[fault]]\nkind = \"kill\"\nrank = 2\nat = \"init\"",
         "8: key fault[0].rank: 2 is out of range; it must be from 0 to 1"},
        {"[[fault]]\nkind = \"kill\"\nat = \"init\"",
         "6: key fault[0].rank: missing; write rank = 1 or ranks = [0, 1]"},
        {"[[fault]]\nkind = \"kill\"\nranks = []\nat = \"init\"",
         "8: key fault[0].ranks: an empty list; write rank = 1 or ranks = [0, 1]"},
        {"[[fault]]\nkind = \"kill\"\nrank = 1\nranks = [0]\nat = \"init\"",
         "8: key fault[0].rank: both rank and ranks; write one of them"},
        {"[[fault]]\nkind = \"kill\"\nrank = 1",
         "6: key fault[0].at: missing; write when, as \"iteration:3\""},
        {"[[fault]]\nkind = \"kill\"\nrank = 1\nat = \"iteration:x\"",
         "9: key fault[0].at: 'iteration:x' is no moment; write init, connect, abort, "
         "rebuild, random, time:0.5s, iteration:3, collective:7, backward:2, epoch:1, replay:4, "
         "before:join_exit or before:finalize"},
        {"[[fault]]\nkind = \"stop\"\nrank = 1\nat = \"init\"\nduration = \"soon\"",
         "10: key fault[0].duration: 'soon' is no time; write as in \"100ms\""},
        {"[fault]\nkind = \"stop\"", "6: key fault: a table; write [[fault]]"},
        {"[expect.glo]\nranks = [\"hung\", \"hung\"]",
         "6: key expect.glo: 'glo' is unknown; did you mean 'gloo'?"},
        {"[expect.gloo]\nranks = [\"hung\"]",
         "7: key expect.gloo.ranks: a list of 1 for 2 ranks; write one item a rank"},
        {"[expect.gloo]\nranks = [\"hung\", \"hang\"]",
         "7: key expect.gloo.ranks: 'hang' is unknown; did you mean 'hung'?"},
        {"[expect.gloo]\nranks = [\"hung\"]\nothers = \"hang\"",
         "8: key expect.gloo.ranks: 'hang' is unknown; did you mean 'hung'?"},
        {"[expect.gloo]\nranks = 3",
         "7: key expect.gloo.ranks: an integer; write a list, one item a rank"},
        {"[expect.gloo]\ncause = \"mismatch\"",
         "7: key expect.gloo.cause: 'mismatch' is unknown; did you mean 'type_mismatch'?"},
        {"[expect.any]",
         "6: key expect.any: expects nothing; write as in ranks = \"finished\""},
        {"[expect.any]\nculprits = []",
         "6: key expect.any: expects nothing; write as in ranks = \"finished\""},
        {"[expect.gloo]\nculprits = [-1]",
         "7: key expect.gloo.culprits: -1 is out of range; it must be from 0 to 1"},
    }));

}  // namespace
}  // namespace lockstep::stress::scenario
