#include "core/plan/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <system_error>

#include "core/plan/scenario_workload.h"
#include "core/plan/toml_fields.h"

namespace lockstep {
namespace {

constexpr std::string_view kFaults[] = {
    "exit",
    "throw",
    "segfault",
    "abort",
    "out_of_memory",
    "hang",
    "sleep",
    "skip_collective",
    "extra_collective",
    "wrong_count",
    "wrong_type",
    "wrong_root",
    "wrong_op",
    "wrong_order",
    "corrupt_input",
    "corrupt_result",
    "leave_group_open",
    "never_finalize",
    "kill",
    "stop",
    "terminate",
    "interrupt",
    "cpu_hog",
    "cpu_throttle",
    "memory_pressure",
    "shm_full",
    "fd_exhaustion",
    "link_down",
    "link_delay",
    "link_loss",
    "link_rate",
    "clock_jump",
    "slow_collective",
    "failed_collective",
    "dropped_completion",
};
constexpr std::string_view kOutcomes[] = {"finished", "failed", "crashed", "killed",
                                          "stopped",  "hung",   "corrupt"};
constexpr std::string_view kCauses[] = {
    "collective_mismatch",
    "count_mismatch",
    "type_mismatch",
    "root_mismatch",
    "reduction_mismatch",
    "order_inversion",
    "rank_exited",
    "rank_failed",
    "rank_crashed",
    "rank_killed",
    "rank_stopped",
    "rank_busy",
    "uneven_inputs",
    "one_sided_evaluation",
    "one_sided_unused_parameters",
    "transport_stall",
    "slow_rank",
    "data_corruption",
    "stream_race",
    "init_failure",
    "abort_hung",
    "out_of_memory",
    "no_effect",
    "unknown",
};
constexpr std::string_view kBackends[] = {"any",  "sim", "sim_nccl", "sim_mpi", "sim_gloo",
                                          "gloo", "mpi", "nccl",     "null"};

constexpr std::string_view kAtPlain[] = {"init", "random"};
constexpr std::string_view kAtNumbered[] = {"iteration", "collective", "backward", "epoch"};
constexpr std::string_view kAtPlaces[] = {"before:join_exit", "before:finalize"};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsCount(std::string_view text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "0.5s", "20ms", "7us": seconds.
std::optional<double> ParseSeconds(std::string_view text) {
  double scale = 1;
  if (text.ends_with("ms")) {
    scale = 1e-3, text.remove_suffix(2);
  } else if (text.ends_with("us")) {
    scale = 1e-6, text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  } else {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) {
    return std::nullopt;
  }
  return value * scale;
}

bool IsMoment(std::string_view at) {
  if (Contains(kAtPlain, at) || Contains(kAtPlaces, at)) return true;
  const std::size_t colon = at.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view number = at.substr(colon + 1);
  if (at.substr(0, colon) == "time") return ParseSeconds(number).has_value();
  return Contains(kAtNumbered, at.substr(0, colon)) && IsCount(number);
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
    fields.Wrong("ranks", fmt::format("{}; write a number, a list of numbers or \"any\"",
                                      node->is_string() ? "a string" : KindOf(*node)));
  }
  scenario.allowed_ranks.assign(sizes.begin(), sizes.end());
  const int from_file = sizes.empty() ? 2 : static_cast<int>(std::max<std::int64_t>(1, sizes[0]));
  scenario.ranks = options.ranks.value_or(from_file);
}

std::vector<int> ReadRankList(TomlFields& fields, std::string_view key, int ranks) {
  std::vector<std::int64_t> list;
  fields.ReadList(key, list, {0, ranks - 1});
  return {list.begin(), list.end()};
}

FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes) {
  TomlFields fields(table, path, mistakes);
  FaultSpec fault = {.line = LineOf(table)};
  if (!fields.Has("kind")) fields.Wrong("kind", "missing; a fault needs a kind, as \"kill\"");
  if (const auto kind = fields.ReadName("kind", kFaults)) fault.kind = kFaults[*kind];
  fault.ranks = ReadRankList(fields, "ranks", ranks);
  std::int64_t rank = 0;
  if (fields.Read("rank", rank, {0, ranks - 1})) fault.ranks.push_back(static_cast<int>(rank));
  if (fields.Has("rank") && fields.Has("ranks")) {
    fields.Wrong("rank", "both rank and ranks; write one of them");
  } else if (!fields.Has("rank") && !fields.Has("ranks")) {
    fields.Wrong("rank", "missing; write rank = 1 or ranks = [0, 1]");
  }
  if (!fields.Has("at")) fields.Wrong("at", "missing; write when, as \"iteration:3\"");
  if (fields.Read("at", fault.at) && !IsMoment(fault.at)) {
    fields.Wrong(
        "at", fmt::format("'{}' is no moment; write init, random, time:0.5s, iteration:3, "
                          "collective:7, backward:2, epoch:1, before:join_exit or before:finalize",
                          fault.at));
  }
  std::string duration;
  if (fields.Read("duration", duration)) {
    fault.duration_seconds = ParseSeconds(duration);
    if (!fault.duration_seconds) {
      fields.Wrong("duration", fmt::format("'{}' is no time; write as in \"100ms\"", duration));
    }
  }
  fields.RejectTheRest();
  return fault;
}

void ReadFaults(TomlFields& fields, Scenario& scenario) {
  const toml::node* node = fields.Find("fault");
  if (node == nullptr) return;
  if (!node->is_array_of_tables()) {
    return fields.Wrong("fault", fmt::format("{}; write [[fault]]", KindOf(*node)));
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
                            fmt::format("{}; write outcomes as in \"hung\"", KindOf(item)));
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

Expectation ReadExpectation(const toml::table& table, const std::string& path, int ranks,
                            TomlMistakes& mistakes) {
  TomlFields fields(table, path, mistakes);
  Expectation expectation;
  if (const toml::node* node = fields.Find("ranks")) {
    if (node->is_string()) {  // the same for every rank
      expectation.ranks.assign(static_cast<std::size_t>(ranks), ReadOutcomes(*node, fields));
    } else if (!node->is_array()) {
      fields.Wrong("ranks", fmt::format("{}; write a list, one item a rank", KindOf(*node)));
    } else if (!fields.Has("others") &&
               node->as_array()->size() != static_cast<std::size_t>(ranks)) {
      fields.Wrong("ranks", fmt::format("a list of {} for {} ranks; write one item a rank",
                                        node->as_array()->size(), ranks));
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
  if (const auto cause = fields.ReadName("cause", kCauses)) expectation.cause = kCauses[*cause];
  expectation.culprits = ReadRankList(fields, "culprits", ranks);
  fields.RejectTheRest();
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
      fields.mistakes().Add(LineOf(node), path, fmt::format("{}; write [{}]", KindOf(node), path));
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
    return InvalidInput(fmt::format("'{}' does not exist; give the path of a scenario", path));
  }
  if (!std::filesystem::is_regular_file(path, error)) {
    return InvalidInput(fmt::format("'{}' is not a file; give the path of a scenario", path));
  }
  if (std::filesystem::file_size(path, error) > kMaxBytes) {
    return InvalidInput(fmt::format("'{}' is larger than 1 MiB, which no scenario is", path));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return EnvironmentError(fmt::format("'{}' can't be read; check its rights", path));
  return text;
}

Scenario ReadScenario(const toml::table& root, const ScenarioOptions& options,
                      TomlMistakes& mistakes) {
  Scenario scenario;
  TomlFields fields(root, "", mistakes);
  if (!fields.Has("name")) fields.Wrong("name", "missing; write name = \"folder/name\"");
  if (fields.Read("name", scenario.name) && scenario.name.empty()) {
    fields.Wrong("name", "empty; write name = \"folder/name\"");
  }
  fields.Read("description", scenario.description);
  fields.Read("source", scenario.source);
  ReadRanks(fields, options, scenario);
  if (!fields.Has("workload")) fields.Wrong("workload", "missing; write a [workload] table");
  if (const toml::table* table = fields.FindTable("workload")) {
    TomlFields workload(*table, "workload", mistakes);
    scenario.workload = ReadWorkload(workload, scenario.ranks, options);
  }
  ReadFaults(fields, scenario);
  ReadExpectations(fields, scenario);
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
    return InvalidInput(
        fmt::format("{}:{}: not TOML: {}", origin, error.source().begin.line, error.description()));
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

}  // namespace lockstep
