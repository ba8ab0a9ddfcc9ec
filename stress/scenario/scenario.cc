// The tables of a scenario file other than [workload], [[fault]] and [recovery], which have files
// of their own. Every mistake goes to TomlMistakes, which keeps the one on the first line.
#include "stress/scenario/scenario.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "core/base/file_text.h"
#include "core/base/named_members.h"
#include "core/base/toml_fields.h"
#include "stress/faults/fault_registry.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
namespace {

constexpr std::string_view kOutcomes[] = {"finished", "failed", "crashed", "killed",
                                          "stopped",  "hung",   "corrupt"};
constexpr std::string_view kBackends[] = {"any",  "sim", "sim_nccl", "sim_mpi", "sim_gloo",
                                          "gloo", "mpi", "nccl",     "null"};

// "cuda": the backend nccl on a GPU, and not on a stand-in's host memory.
constexpr std::string_view kRequirements[] = {"gloo", "mpi", "nccl", "cuda"};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// `ranks` of the file: one number, a list, or "any".
void ReadRanks(TomlFields& fields, const ScenarioOptions& options, Scenario& scenario) {
  constexpr TomlRange kRange = {1, kMaxScenarioRanks};
  const toml::node* node = fields.Find("ranks");
  std::vector<std::int64_t> sizes;
  if (node == nullptr) {
    fields.Wrong("ranks", "missing; write a number, a list of numbers or \"any\"");
  } else if (node->is_array()) {
    if (fields.ReadList("ranks", sizes, kRange) && sizes.empty()) {
      fields.Wrong("ranks", "an empty list; write a number, a list of numbers or \"any\"");
    }
  } else if (node->is_integer()) {
    sizes.assign(1, 0);
    fields.Read("ranks", sizes[0], kRange);
  } else if (!node->is_string() || **node->as_string() != "any") {
    fields.Wrong("ranks", "{}; write a number, a list of numbers or \"any\"",
                 node->is_string() ? "a string" : KindOf(*node));
  }
  scenario.allowed_ranks.assign(sizes.begin(), sizes.end());
  const int from_file = sizes.empty() ? 2 : static_cast<int>(std::max<std::int64_t>(1, sizes[0]));
  scenario.ranks = options.ranks.value_or(from_file);
}

// A network is between hosts.
void ReadHosts(TomlFields& fields, Scenario& scenario) {
  constexpr TomlRange kRange = {1, kMaxScenarioRanks};
  fields.Read("hosts", scenario.hosts, kRange);
  for (const FaultSpec& fault : scenario.faults) {
    const stress::faults::FaultInfo* const info = stress::faults::FindFault(fault.kind);
    if (info != nullptr && info->scope == stress::faults::FaultScope::kNetwork) {
      scenario.hosts = std::max(2, scenario.hosts);
    }
  }
}

std::vector<int> ReadRankList(TomlFields& fields, std::string_view key, int ranks) {
  std::vector<std::int64_t> list;
  fields.ReadList(key, list, {0, ranks - 1});
  return {list.begin(), list.end()};
}

void ReadFaults(TomlFields& fields, Scenario& scenario) {
  const toml::node* node = fields.Find("fault");
  if (node == nullptr) return;
  if (!node->is_array_of_tables()) {
    return fields.Wrong("fault", "{}; write [[fault]]", KindOf(*node));
  }
  for (const toml::node& item : *node->as_array()) {
    const std::string path = fmt::format("fault[{}]", scenario.faults.size());
    scenario.faults.push_back(ReadFault(*item.as_table(), path, scenario.ranks, fields.mistakes()));
  }
}

// One rank's outcomes: a name or a list of names.
std::vector<std::string> ReadOutcomes(const toml::node& node, TomlFields& fields) {
  std::vector<std::string> outcomes;
  const auto add = [&](const toml::node& item) {
    if (!item.is_string()) {
      fields.mistakes().Add(LineOf(item), fields.PathOf("ranks"),
                            "{}; write outcomes as in \"hung\"", KindOf(item));
      return;
    }
    const std::string& name = **item.as_string();
    outcomes.push_back(name);
    if (Contains(kOutcomes, name)) return;
    fields.mistakes().Add(LineOf(item), fields.PathOf("ranks"), DescribeUnknown(name, kOutcomes));
  };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& item : *list) add(item);
  } else {
    add(node);
  }
  return outcomes;
}

// figures = { repeated_epochs = 2, batches = [3, 4] }: a number, or the least and the most.
void ReadFigures(TomlFields& fields, Expectation& expectation) {
  const toml::table* table = fields.FindTable("figures");
  if (table == nullptr) return;
  for (const auto& [key, node] : *table) {
    const std::string name(key.str());
    const toml::array* range = node.as_array();
    if (range != nullptr && range->size() == 2 && range->get(0)->is_number() &&
        range->get(1)->is_number()) {
      expectation.figures[name] = {range->get(0)->value_or(0.0), range->get(1)->value_or(0.0)};
    } else if (node.is_number()) {
      expectation.figures[name] = {node.value_or(0.0), node.value_or(0.0)};
    } else {
      fields.mistakes().Add(LineOf(node), fields.PathOf("figures." + name),
                            "{}; write a number, or [least, most]", KindOf(node));
    }
  }
}

bool SaysNothing(const Expectation& expectation) {
  return expectation.ranks.empty() && !expectation.cause && expectation.culprits.empty() &&
         expectation.hosts_of.empty() && expectation.figures.empty() &&
         expectation.recovery.empty();
}

Expectation ReadExpectation(const toml::table& table, const std::string& path, int ranks,
                            TomlMistakes& mistakes) {
  TomlFields fields(table, path, mistakes);
  Expectation expectation;
  if (const toml::node* node = fields.Find("ranks")) {
    if (node->is_string()) {  // the same for every rank
      expectation.ranks.assign(static_cast<std::size_t>(ranks), ReadOutcomes(*node, fields));
    } else if (!node->is_array()) {
      fields.Wrong("ranks", "{}; write a list, one item a rank", KindOf(*node));
    } else if (!fields.Has("others") &&
               node->as_array()->size() != static_cast<std::size_t>(ranks)) {
      fields.Wrong("ranks", "a list of {} for {} ranks; write one item a rank",
                   node->as_array()->size(), ranks);
    } else {
      for (const toml::node& item : *node->as_array()) {
        expectation.ranks.push_back(ReadOutcomes(item, fields));
      }
    }
  }
  // Of the ranks that the list does not reach.
  if (const toml::node* node = fields.Find("others")) {
    expectation.ranks.resize(static_cast<std::size_t>(ranks), ReadOutcomes(*node, fields));
  }
  const std::vector<std::string_view> causes = verdict::NamesOfCases();
  if (const auto cause = fields.ReadName("cause", causes)) {
    expectation.cause = verdict::FindingCause::Named(causes[*cause]).known();
  }
  expectation.culprits = ReadRankList(fields, "culprits", ranks);
  expectation.hosts_of = ReadRankList(fields, "hosts_of", ranks);
  ReadFigures(fields, expectation);
  if (const auto recovery = fields.ReadName("recovery", kRecoveryOutcomes)) {
    expectation.recovery = kRecoveryOutcomes[*recovery];
  }
  fields.RejectTheRest();
  if (SaysNothing(expectation) && mistakes.none()) {
    mistakes.Add(LineOf(table), path, "expects nothing; write as in ranks = \"finished\"");
  }
  return expectation;
}

void ReadExpectations(TomlFields& fields, Scenario& scenario) {
  const toml::table* all = fields.FindTable("expect");
  if (all == nullptr) return;
  for (const auto& [key, node] : *all) {
    const std::string backend(key.str());
    const std::string path = "expect." + backend;
    if (!Contains(kBackends, backend)) {
      fields.mistakes().Add(key.source().begin.line, path, DescribeUnknown(backend, kBackends));
    } else if (!node.is_table()) {
      fields.mistakes().Add(LineOf(node), path, "{}; write [{}]", KindOf(node), path);
    } else {
      scenario.expect[backend] =
          ReadExpectation(*node.as_table(), path, scenario.ranks, fields.mistakes());
    }
  }
}

Result<std::string> ReadFile(const std::string& path) {
  constexpr std::uintmax_t kMaxBytes = 1 << 20;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return InvalidInput("'{}' does not exist; give the path of a scenario", path);
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return InvalidInput("'{}' is not a file; give the path of a scenario", path);
  }
  if (std::filesystem::file_size(path, error) > kMaxBytes) {
    return InvalidInput("'{}' is larger than 1 MiB, which no scenario is", path);
  }
  std::optional<std::string> text = ReadText(path);
  if (!text) return EnvironmentError("'{}' can't be read; check its rights", path);
  return *std::move(text);
}

Scenario ReadScenario(const toml::table& root, const ScenarioOptions& options,
                      TomlMistakes& mistakes) {
  Scenario scenario;
  TomlFields fields(root, "", mistakes);
  if (!fields.Has("name")) fields.Wrong("name", "missing; write name = \"folder/name\"");
  if (fields.Read("name", scenario.name) && scenario.name.empty()) {
    fields.Wrong("name", "empty; write name = \"folder/name\"");
  }
  LOCKSTEP_FIELDS(fields.Read, scenario, description, source);
  ReadRanks(fields, options, scenario);
  if (!fields.Has("workload")) fields.Wrong("workload", "missing; write a [workload] table");
  if (const toml::table* table = fields.FindTable("workload")) {
    TomlFields workload(*table, "workload", mistakes);
    scenario.workload = ReadWorkload(workload, scenario.ranks, options);
  }
  if (const auto requirement = fields.ReadName("requires", kRequirements)) {
    scenario.requirement = kRequirements[*requirement];
  } else if (std::holds_alternative<GraphReplayProgram>(scenario.workload)) {
    scenario.requirement = "nccl";  // the others' calls are the host's, and no graph holds them
  }
  ReadFaults(fields, scenario);
  ReadHosts(fields, scenario);
  ReadExpectations(fields, scenario);
  ReadRecovery(fields, scenario);
  fields.RejectTheRest();
  return scenario;
}

}  // namespace

Result<Scenario> ParseScenario(std::string_view text, const std::string& origin,
                               const ScenarioOptions& options) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    return InvalidInput("{}:{}: not TOML: {}; mend this line", origin, error.source().begin.line,
                        error.description());
  }
  TomlMistakes mistakes(origin);
  Scenario scenario = ReadScenario(root, options, mistakes);
  LOCKSTEP_RETURN_IF_ERROR(mistakes.status());
  scenario.origin = origin;
  return scenario;
}

Result<Scenario> LoadScenario(const std::string& path, const ScenarioOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseScenario(text, path, options);
}

}  // namespace lockstep::stress::scenario
