// kind = "script", and the workloads that are scripts written shorter.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/units.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
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
  program.creation.resize(static_cast<std::size_t>(ranks));
  return program;
}

// Of a kind whose ranks do the same again and again.
ScriptProgram NewLoop(TomlFields& fields, int ranks) {
  ScriptProgram program = NewProgram(ranks);
  program.rounds = 20;
  fields.Read("rounds", program.rounds, {1, kMostRounds});
  fields.ReadEnum("after_finish", kAfterFinishNames, program.after_finish);
  return program;
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
    fields.Wrong(key, "{}; write a list of steps", KindOf(*node));
    return steps;
  }
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_string()) {
      fields.mistakes().Add(LineOf(item), fields.PathOf(key),
                            "{}; write a step as \"barrier world\"", KindOf(item));
      continue;
    }
    Result<ScriptStep> step = ParseStep(**item.as_string(), program.communicators);
    if (!step.ok()) {
      fields.mistakes().Add(LineOf(item), fields.PathOf(key), "step '{}': {}", **item.as_string(),
                            step.status().message());
      continue;
    }
    steps.push_back(*step);
  }
  return steps;
}

// Calls `read` with every item of a table by rank (rank.0 = …, create.0 = …).
template <typename Read>
void ReadByRank(TomlFields& fields, std::string_view key, int ranks, Read read) {
  const toml::table* table = fields.FindTable(key);
  if (table == nullptr) return;
  TomlFields inner(*table, fields.PathOf(key), fields.mistakes());
  for (const auto& [name, node] : *table) {
    const std::string_view text = name.str();
    int rank = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!whole || rank < 0 || rank >= ranks) {
      inner.Wrong(text, "no rank of {}; start more ranks, or write {}.0 = [...]", ranks, key);
      continue;
    }
    read(inner, text, static_cast<std::size_t>(rank));
  }
  inner.RejectTheRest();
}

// A list of communicators by name.
std::vector<std::size_t> ReadNames(TomlFields& fields, std::string_view key,
                                   const ScriptProgram& program) {
  std::vector<std::size_t> indices;
  const toml::node* node = fields.Find(key);
  if (node == nullptr) return indices;
  if (!node->is_array()) {
    fields.Wrong(key, "{}; write a list of communicators", KindOf(*node));
    return indices;
  }
  std::vector<std::string_view> names;
  for (const ScriptCommunicator& one : program.communicators) names.push_back(one.name);
  for (const toml::node& item : *node->as_array()) {
    const std::string name = item.is_string() ? **item.as_string() : std::string(KindOf(item));
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) {
      fields.mistakes().Add(LineOf(item), fields.PathOf(key), DescribeUnknown(name, names));
    } else {
      indices.push_back(static_cast<std::size_t>(known - names.begin()));
    }
  }
  return indices;
}

// create.1 = ["b", "a"]: another order, or not all of them.
void ReadCreation(TomlFields& fields, ScriptProgram& program) {
  std::vector<std::size_t> all(program.communicators.size() - 1);
  std::iota(all.begin(), all.end(), 1);
  std::fill(program.creation.begin(), program.creation.end(), all);
  const int ranks = static_cast<int>(program.steps.size());
  ReadByRank(fields, "create", ranks,
             [&](TomlFields& inner, std::string_view key, std::size_t rank) {
               std::vector<std::size_t> order = ReadNames(inner, key, program);
               std::vector<std::size_t> sorted = order;
               std::sort(sorted.begin(), sorted.end());
               const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
               if (twice || (!sorted.empty() && sorted.front() == 0)) {
                 inner.Wrong(key, "name each communicator once, and not the world");
                 return;
               }
               program.creation[rank] = std::move(order);
             });
}

bool Has(const std::vector<std::size_t>& list, std::size_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// What a rank calls exists, and has one stream: a communicator's calls are ordered by it.
void CheckStreams(TomlFields& fields, std::size_t rank, const ScriptProgram& program) {
  const std::vector<ScriptStep>& steps = program.steps[rank];
  std::vector<const ScriptStep*> first(program.communicators.size(), nullptr);
  for (const ScriptStep& step : steps) {
    const bool calls =
        step.kind == Kind::kCollective || step.kind == Kind::kChurn || step.kind == Kind::kSplit;
    const std::string& name = program.communicators[step.communicator].name;
    if (calls) {
      const ScriptStep*& before = first[step.communicator];
      if (before == nullptr) before = &step;
      if (before->stream != step.stream) {
        fields.Wrong("rank",
                     "rank {} calls '{}' on two streams; write one stream for "
                     "it, or make another communicator",
                     rank, name);
      }
      if (step.communicator != 0 && !Has(program.creation[rank], step.communicator)) {
        fields.Wrong("rank", "rank {} calls '{}', which it does not create; name it in create.{}",
                     rank, name, rank);
      }
    }
    const bool known =
        step.wait.empty() || std::any_of(steps.begin(), steps.end(), [&](const ScriptStep& other) {
          return other.stream == step.wait;
        });
    if (!known) {
      fields.Wrong("rank",
                   "rank {} waits for stream '{}' and puts nothing on it; name one that it uses",
                   rank, step.wait);
    }
  }
}

// gloo crashes on a message to oneself, and a blocking send can wait for ever elsewhere.
bool IsToOneself(const ScriptStep& step, int rank, const std::vector<int>& members) {
  return step.kind == Kind::kCollective && collective::IsMessage(step.operation.collective) &&
         members[static_cast<std::size_t>(step.operation.root)] == rank;
}

// A rank calls only communicators that it belongs to, and sends to others.
void CheckCalls(TomlFields& fields, const ScriptProgram& program) {
  for (std::size_t rank = 0; rank < program.steps.size(); ++rank) {
    CheckStreams(fields, rank, program);
    for (const ScriptStep& step : program.steps[rank]) {
      const ScriptCommunicator& used = program.communicators[step.communicator];
      const auto& members = used.members;
      if (IsToOneself(step, static_cast<int>(rank), members)) {
        fields.Wrong("rank", "peer={} of '{}' is rank {} itself; name another rank",
                     step.operation.root, used.name, rank);
        return;
      }
      if (program.outsiders_return && step.kind == Kind::kCollective) continue;
      if (std::find(members.begin(), members.end(), static_cast<int>(rank)) != members.end()) {
        continue;
      }
      fields.Wrong("rank",
                   "rank {} calls '{}', whose members are {}; make it a member or remove the step",
                   rank, used.name, fmt::join(members, ", "));
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
    ScriptStep step{.kind = kind, .ns = value * 1000};
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

std::vector<collective::Operation> ReadOperations(TomlFields& fields,
                                                  collective::Collective collective, int ranks) {
  collective::Operation operation;
  operation.collective = collective;
  std::string type = "f32";
  if (fields.Read("type", type)) {
    const Result<collective::DataType> parsed = collective::ParseDataType("type", type);
    if (!parsed.ok()) fields.Wrong("type", parsed.status().message());
    if (parsed.ok()) operation.type = *parsed;
  }
  if (collective == collective::Collective::kBroadcast) {
    fields.Read("root", operation.root, {0, ranks - 1});
  }
  std::vector<collective::Operation> operations;
  const auto add = [&](std::int64_t bytes) {
    operation.count = std::max<std::int64_t>(1, bytes / collective::SizeOf(operation.type));
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

collective::Collective ReadCollective(TomlFields& fields) {
  std::string collective = "all_reduce";
  fields.Read("collective", collective);
  const Result<collective::Collective> parsed =
      collective::ParseCollective("collective", collective);
  if (!parsed.ok()) fields.Wrong("collective", parsed.status().message());
  return parsed.ok() ? *parsed : collective::Collective::kAllReduce;
}

ScriptStep StepOf(Kind kind, const collective::Operation& operation) {
  return ScriptStep{.kind = kind, .operation = operation};
}

// Of one collective on communicators of several sizes: its root is a rank of each.
void CheckRoots(TomlFields& fields, const ScriptProgram& program) {
  for (const std::vector<ScriptStep>& steps : program.steps) {
    for (const ScriptStep& step : steps) {
      const auto& called = program.communicators[step.communicator];
      const auto size = static_cast<int>(called.members.size());
      if (step.operation.root < size) continue;
      return fields.Wrong("root", fmt::format("names none of the {} ranks of communicator '{}'; "
                                              "write root = 0, or leave it out of order",
                                              size, called.name));
    }
  }
}

}  // namespace

ScriptProgram ReadScript(TomlFields& fields, int ranks, const ScenarioOptions&) {
  ScriptProgram program = NewProgram(ranks);
  ReadCommunicators(fields, ranks, program);
  fields.Read("rounds", program.rounds, {1, kMostRounds});
  fields.ReadEnum("after_finish", kAfterFinishNames, program.after_finish);
  ReadCreation(fields, program);
  fields.Read("outsiders_return", program.outsiders_return);
  const std::vector<ScriptStep> others = ReadSteps(fields, "default", program);
  std::fill(program.steps.begin(), program.steps.end(), others);
  if (!fields.Has("default") && !fields.Has("rank")) {
    fields.Wrong("rank", "missing; write rank.0 = [...], or default = [...] for all ranks");
  }
  ReadByRank(fields, "rank", ranks, [&](TomlFields& inner, std::string_view key, std::size_t rank) {
    program.steps[rank] = ReadSteps(inner, key, program);
  });
  if (fields.mistakes().none()) CheckCalls(fields, program);
  return program;
}

ScriptProgram ReadGroups(TomlFields& fields, int ranks, const ScenarioOptions&) {
  constexpr std::string_view kStreams[] = {"one", "each"};
  ScriptProgram program = NewLoop(fields, ranks);
  ReadCommunicators(fields, ranks, program);
  ReadCreation(fields, program);
  const bool each = fields.ReadName("streams", kStreams) == std::size_t{1};
  const std::vector<collective::Operation> operations =
      ReadOperations(fields, ReadCollective(fields), ranks);
  std::vector<std::size_t> order(program.communicators.size());
  std::iota(order.begin(), order.end(), 0);
  if (fields.Has("order")) order = ReadNames(fields, "order", program);
  std::vector<std::vector<std::size_t>> orders(static_cast<std::size_t>(ranks), order);
  ReadByRank(fields, "rank", ranks, [&](TomlFields& inner, std::string_view key, std::size_t rank) {
    orders[rank] = ReadNames(inner, key, program);
  });
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    for (const std::size_t index : orders[rank]) {
      const auto& members = program.communicators[index].members;
      if (!std::binary_search(members.begin(), members.end(), static_cast<int>(rank))) continue;
      for (const collective::Operation& operation : operations) {
        ScriptStep step = StepOf(Kind::kCollective, operation);
        step.communicator = index;
        if (each) step.stream = program.communicators[index].name;
        program.steps[rank].push_back(step);
      }
    }
  }
  if (fields.mistakes().none()) CheckRoots(fields, program);
  if (fields.mistakes().none()) CheckCalls(fields, program);
  return program;
}

ScriptProgram ReadLoop(TomlFields& fields, int ranks, collective::Collective collective) {
  ScriptProgram program = NewLoop(fields, ranks);
  const std::vector<ScriptStep> loads = ReadTimes(fields, "load_us", ranks, Kind::kLoad);
  const std::vector<ScriptStep> computes = ReadTimes(fields, "compute_us", ranks, Kind::kCompute);
  const std::vector<collective::Operation> operations = ReadOperations(fields, collective, ranks);
  for (std::size_t rank = 0; rank < program.steps.size(); ++rank) {
    for (const ScriptStep& step : {loads[rank], computes[rank]}) {
      if (step.ns > 0) program.steps[rank].push_back(step);
    }
    for (const collective::Operation& operation : operations) {
      program.steps[rank].push_back(StepOf(Kind::kCollective, operation));
    }
  }
  return program;
}

GraphReplayProgram ReadGraphReplay(TomlFields& fields, int ranks, const ScenarioOptions&) {
  GraphReplayProgram program;
  fields.Read("rounds", program.rounds, {2, kMostRounds});
  program.operations = ReadOperations(fields, ReadCollective(fields), ranks);
  return program;
}

ScriptProgram ReadChurn(TomlFields& fields, int ranks, const ScenarioOptions&) {
  ScriptProgram program = NewLoop(fields, ranks);
  const std::vector<collective::Operation> operations =
      ReadOperations(fields, collective::Collective::kAllReduce, ranks);
  for (std::vector<ScriptStep>& steps : program.steps) {
    for (const collective::Operation& operation : operations) {
      steps.push_back(StepOf(Kind::kChurn, operation));
      steps.push_back(StepOf(Kind::kSplit, {}));
      steps.push_back(StepOf(Kind::kCollective, operation));
    }
  }
  return program;
}

}  // namespace lockstep::stress::scenario
