// The collectives of eight programs, call by call, and the gradients they end with, against what
// real PyTorch printed (testdata/collective_traces.txt).
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "core/ddp/buckets.h"
#include "core/ddp/small_models.h"
#include "core/ddp/testing/ddp_world.h"
#include "gtest/gtest.h"

namespace lockstep::ddp {
namespace {

struct GoldenRank {
  std::map<std::string, std::string> sections;
  std::vector<double> grads;  // the first element of each parameter's
};
struct GoldenProgram {
  std::string title;
  TrainingProgram program;
  std::vector<GoldenRank> ranks = std::vector<GoldenRank>(2);
};

std::map<std::string, std::string> Settings(const std::string& text) {
  std::map<std::string, std::string> settings;
  std::istringstream stream(text);
  for (std::string setting; std::getline(stream, setting, ',');) {
    const std::size_t equals = setting.find('=');
    settings[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return settings;
}

TrainingProgram ProgramOf(const std::string& text) {
  auto settings = Settings(text);
  TrainingProgram program;
  const std::map<std::string, std::string> models = {
      {"lin", "linear_1_1"}, {"bn", "bn_4_4_2"}, {"two", "two_branch"}};
  program.model = models.at(settings.at("model"));
  program.inputs = {{std::stoi(settings.at("n"))}};
  program.extra_inputs_per_rank = settings.count("extra") ? std::stoi(settings["extra"]) : 1;
  program.broadcast_buffers = settings["bb"] != "0";
  program.join = settings["join"] == "1";
  program.find_unused_parameters = settings["unused"] == "1";
  program.static_graph = settings["static"] == "1";
  if (settings.count("nosync")) program.no_sync_iterations = {std::stoi(settings["nosync"])};
  if (settings.count("usec")) program.branch = {{'b', 'c'}};
  if (settings.count("eval")) {
    program.evaluation = EvaluationProgram{.after_iteration = std::stoi(settings["eval"]),
                                           .ranks = {},
                                           .train_mode = true,
                                           .inputs = {{1}}};
  }
  return program;
}

std::vector<double> NumbersAfter(const std::string& line, const std::string& word) {
  std::string list = line.substr(line.find(word) + word.size());
  list = list.substr(list.find('[') + 1);
  std::istringstream stream(list.substr(0, list.find(']')));
  std::vector<double> numbers;
  for (std::string number; std::getline(stream, number, ',');) numbers.push_back(std::stod(number));
  return numbers;
}

std::vector<GoldenProgram> ReadGolden() {
  std::ifstream file("core/ddp/testdata/collective_traces.txt");
  std::vector<GoldenProgram> programs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("##### ")) {
      const std::string settings = line.substr(line.find("model="));
      programs.push_back({.title = settings, .program = ProgramOf(settings)});
    } else if (line.starts_with("  rank")) {
      std::istringstream stream(line.substr(8));
      std::string section;
      stream >> section;
      std::string calls;
      for (std::string call; stream >> call;) calls += (calls.empty() ? "" : " ") + call;
      programs.back().ranks.at(static_cast<std::size_t>(line[6] - '0')).sections[section] = calls;
    } else if (line.starts_with("FINAL rank ")) {
      programs.back().ranks.at(static_cast<std::size_t>(line[11] - '0')).grads =
          NumbersAfter(line, "grad");
    }
  }
  return programs;
}

void ExpectTrace(const GoldenRank& golden, const TraceObserver& observer) {
  std::map<std::string, std::string> sections = {{"JOINEXIT", ""}};  // printed without join too
  for (const auto& line : observer.lines) sections[line.section] = line.calls;
  EXPECT_EQ(sections, golden.sections);
}

// What PyTorch prints as -0.0 or 1e-06 is cancelled to nothing up to rounding.
void ExpectGradients(const GoldenRank& golden, Module& module) {
  ASSERT_EQ(golden.grads.size(), module.params().size());
  for (std::size_t i = 0; i < golden.grads.size(); ++i) {
    ASSERT_TRUE(module.params()[i].has_grad);
    EXPECT_NEAR(static_cast<const float*>(module.params()[i].grad)[0], golden.grads[i], 2.5e-6)
        << module.params()[i].info.name;
  }
}

void Compare(GoldenProgram golden, Streams streams, TorchRules rules) {
  SCOPED_TRACE(golden.title + ", streams " + std::to_string(static_cast<int>(streams)));
  golden.program.buckets.rules = rules;
  std::mutex mutex;  // expectations are printed one at a time
  int ranks = 0;
  RunDdpWorld({.ranks = 2, .streams = streams}, [&](EnginePorts ports) {
    const int rank = ports.communicator.rank();
    auto module = MakeSmallModel(
        golden.program.model, {.branch_c = golden.program.branch.At(rank) == 'c'}, ports.kernels);
    ASSERT_TRUE(module.ok());
    TraceObserver observer;
    ports.observer = &observer;
    NoSurroundings surroundings;
    const TrainingOutcome outcome = RunTraining(golden.program, **module, ports, surroundings);
    ASSERT_TRUE(ports.compute.Synchronize(Deadline::AfterSeconds(20)).ok());
    std::lock_guard lock(mutex);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.message();
    const GoldenRank& expected = golden.ranks[static_cast<std::size_t>(rank)];
    ExpectTrace(expected, observer);
    ExpectGradients(expected, **module);
    ++ranks;
  });
  EXPECT_EQ(ranks, 2);
}

TEST(GoldenTraces, EveryCallAndEveryGradient) {
  const std::vector<GoldenProgram> programs = ReadGolden();
  ASSERT_EQ(programs.size(), 8u);
  for (const GoldenProgram& program : programs) {
    for (const Streams streams : kAllStreams) Compare(program, streams, TorchRules::k2_6);
    // 1.13 broadcasts the first buffers even with broadcast_buffers=False.
    if (program.program.broadcast_buffers) Compare(program, Streams::kBeside, TorchRules::k1_13);
  }
}

}  // namespace
}  // namespace lockstep::ddp
