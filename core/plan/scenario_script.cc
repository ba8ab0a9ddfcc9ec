// kind = "script", and the workloads that are scripts written shorter.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/units.h"
#include "core/plan/scenario_workload.h"

namespace lockstep {
namespace {

using Kind = ScriptStep::Kind;

constexpr std::int64_t kMostRounds = 1'000'000'000;
constexpr double kMostUs = 1e10;

ScriptProgram NewProgram(int ranks) {
  ScriptProgram program;
  ScriptCommunicator world{"world", std::vector<int>(static_cast<std::size_t>(ranks))};
  std::iota(world.members.begin(), world.members.end(), 0);
  program.communicators.push_back(std::move(world));
  program.steps.resize(static_cast<std::size_t>(ranks));
  return program;
}

void ReadAfterFinish(TomlFields& fields, ScriptProgram& program) {
  static constexpr std::string_view kNames[] = {"exit", "linger"};
  if (const auto index = fields.ReadName("after_finish", kNames)) {
    program.after_finish = static_cast<AfterFinish>(*index);
  }
}

void ReadCommunicators(TomlFields& fields, int ranks, ScriptProgram& program) {
  const toml::table* table = fields.FindTable("communicators");
  if (table == nullptr) return;
  TomlFields inner(*table, fields.PathOf("communicators"), fields.mistakes());
  for (const auto& [key, node] : *table) {
    std::vector<std::int64_t> members;
    if (key.str() == "world") inner.Wrong("world", "always exists with all ranks; choose a name");
    if (!inner.ReadList(key.str(), members, {0, ranks - 1})) continue;
    std::sort(members.begin(), members.end());
    if (members.empty() || std::adjacent_find(members.begin(), members.end()) != members.end()) {
      inner.Wrong(key.str(), "a communicator has one or more ranks, each once");
    }
    program.communicators.push_back(
        {std::string(key.str()), std::vector<int>(members.begin(), members.end())});
  }
  inner.RejectTheRest();
}

std::vector<ScriptStep> ReadSteps(TomlFields& fields, std::string_view key,
                                  const ScriptProgram& program) {
  std::vector<ScriptStep> steps;
  const toml::node* node = fields.Find(key);
  if (node == nullptr) return steps;
  if (!node->is_array()) {
    fields.Wrong(key, fmt::format("{}; write a list of steps", KindOf(*node)));
    return steps;
  }
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) {
      fields.mistakes().Add(LineOf(item), fields.PathOf(key),
                            fmt::format("{}; write a step as \"barrier world\"", KindOf(item)));
      continue;
    }
    Result<ScriptStep> step = ParseStep(**item.as_string(), program.communicators);
    if (!step.ok()) {
      fields.mistakes().Add(
          LineOf(item), fields.PathOf(key),
          fmt::format("step '{}': {}", **item.as_string(), step.status().message()));
      continue;
    }
    steps.push_back(*step);
  }
  return steps;
}

// A rank calls only communicators that it belongs to.
void CheckMembers(TomlFields& fields, const ScriptProgram& program) {
  for (std::size_t rank = 0; rank < program.steps.size(); ++rank) {
    for (const ScriptStep& step : program.steps[rank]) {
      const ScriptCommunicator& used = program.communicators[step.communicator];
      const auto& members = used.members;
      if (std::find(members.begin(), members.end(), static_cast<int>(rank)) != members.end()) {
        continue;
      }
      fields.Wrong("rank", fmt::format("rank {} calls '{}', whose members are {}; make it a member "
                                       "or remove the step",
                                       rank, used.name, fmt::join(members, ", ")));
      return;
    }
  }
}

// One number of microseconds for all ranks or a list with one for each.
std::vector<ScriptStep> ReadTimes(TomlFields& fields, std::string_view key, int ranks, Kind kind) {
  std::vector<std::int64_t> us(static_cast<std::size_t>(ranks), 0);
  fields.ReadPerRank(key, ranks, us, {0, static_cast<std::int64_t>(kMostUs)});
  std::vector<ScriptStep> steps;
  for (const std::int64_t value : us) {
    ScriptStep step;
    step.kind = kind;
    step.ns = value * 1000;
    steps.push_back(step);
  }
  return steps;
}

// "64K" or a number of bytes.
std::int64_t ReadSize(TomlFields& fields, std::string_view key, const toml::node& node) {
  if (node.is_integer() && **node.as_integer() >= 0) return **node.as_integer();
  if (node.is_string()) {
    const Result<std::int64_t> bytes = ParseBytes("sizes", **node.as_string());
    if (bytes.ok()) return *bytes;
  }
  fields.mistakes().Add(LineOf(node), fields.PathOf(key),
                        "no size; write bytes as 1024 or \"64K\"");
  return 0;
}

std::vector<Operation> ReadOperations(TomlFields& fields, Collective collective, int ranks) {
  Operation operation;
  operation.collective = collective;
  std::string type = "f32";
  if (fields.Read("type", type)) {
    const Result<DataType> parsed = ParseDataType("type", type);
    if (!parsed.ok()) fields.Wrong("type", parsed.status().message());
    if (parsed.ok()) operation.type = *parsed;
  }
  if (collective == Collective::kBroadcast) {
    std::int64_t root = 0;
    if (fields.Read("root", root, {0, ranks - 1})) operation.root = static_cast<int>(root);
  }
  std::vector<Operation> operations;
  const auto add = [&](std::int64_t bytes) {
    operation.count = std::max<std::int64_t>(1, bytes / SizeOf(operation.type));
    operations.push_back(operation);
  };
  const toml::node* node = fields.Find("sizes");
  if (node == nullptr) {
    add(65'536);
  } else if (!node->is_array() || node->as_array()->empty()) {
    fields.Wrong("sizes", "no sizes; write a list of bytes, as [8, \"64K\"]");
  } else {
    for (const toml::node& item : *node->as_array()) add(ReadSize(fields, "sizes", item));
  }
  return operations;
}

ScriptStep StepOf(Kind kind, const Operation& operation) {
  ScriptStep step;
  step.kind = kind;
  step.operation = operation;
  return step;
}

}  // namespace

ScriptProgram ReadScript(TomlFields& fields, int ranks, const ScenarioOptions&) {
  ScriptProgram program = NewProgram(ranks);
  ReadCommunicators(fields, ranks, program);
  fields.Read("rounds", program.rounds, {1, kMostRounds});
  ReadAfterFinish(fields, program);
  const std::vector<ScriptStep> others = ReadSteps(fields, "default", program);
  std::fill(program.steps.begin(), program.steps.end(), others);
  if (const toml::table* table = fields.FindTable("rank")) {
    TomlFields inner(*table, fields.PathOf("rank"), fields.mistakes());
    for (const auto& [key, node] : *table) {
      const std::string_view text = key.str();
      int rank = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
      const bool whole = error == std::errc() && end == text.data() + text.size();
      if (!whole || rank < 0 || rank >= ranks) {
        inner.Wrong(text, fmt::format("no rank of {}; write rank.0 = [...]", ranks));
        continue;
      }
      program.steps[static_cast<std::size_t>(rank)] = ReadSteps(inner, text, program);
    }
    inner.RejectTheRest();
  } else if (!fields.Has("default")) {
    fields.Wrong("rank", "missing; write rank.0 = [...], or default = [...] for all ranks");
  }
  CheckMembers(fields, program);
  return program;
}

ScriptProgram ReadLoop(TomlFields& fields, int ranks, Collective collective) {
  ScriptProgram program = NewProgram(ranks);
  program.rounds = 20;
  fields.Read("rounds", program.rounds, {1, kMostRounds});
  ReadAfterFinish(fields, program);
  const std::vector<ScriptStep> loads = ReadTimes(fields, "load_us", ranks, Kind::kLoad);
  const std::vector<ScriptStep> computes = ReadTimes(fields, "compute_us", ranks, Kind::kCompute);
  const std::vector<Operation> operations = ReadOperations(fields, collective, ranks);
  for (std::size_t rank = 0; rank < program.steps.size(); ++rank) {
    for (const ScriptStep& step : {loads[rank], computes[rank]}) {
      if (step.ns > 0) program.steps[rank].push_back(step);
    }
    for (const Operation& operation : operations) {
      program.steps[rank].push_back(StepOf(Kind::kCollective, operation));
    }
  }
  return program;
}

ScriptProgram ReadChurn(TomlFields& fields, int ranks, const ScenarioOptions&) {
  ScriptProgram program = NewProgram(ranks);
  program.rounds = 20;
  fields.Read("rounds", program.rounds, {1, kMostRounds});
  ReadAfterFinish(fields, program);
  const std::vector<Operation> operations = ReadOperations(fields, Collective::kAllReduce, ranks);
  for (std::vector<ScriptStep>& steps : program.steps) {
    for (const Operation& operation : operations) {
      steps.push_back(StepOf(Kind::kChurn, operation));
      steps.push_back(StepOf(Kind::kSplit, {}));
      steps.push_back(StepOf(Kind::kCollective, operation));
    }
  }
  return program;
}

}  // namespace lockstep
