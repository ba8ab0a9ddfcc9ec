// Reads a [[fault]] table by two tables: the kinds of faults, and what each kind needs further.
// Moments are checked for their form only; whether a program reaches one is found when faults are
// planned.
#include "stress/scenario/scenario_fault.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/units.h"
#include "stress/scenario/scenario_link.h"

namespace lockstep::stress::scenario {
namespace {

constexpr std::string_view kFaults[] = {
    "exit",
    "throw",
    "segfault",
    "abort",
    "out_of_memory",
    "device_memory_full",
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
    "low_memlock",
    "environment",
    "link_down",
    "link_delay",
    "link_loss",
    "link_rate",
    "link_reset",
    "network_down",
    "network_delay",
    "network_loss",
    "network_rate",
    "network_reorder",
    "network_reset",
    "network_block",
    "clock_jump",
    "slow_collective",
    "failed_collective",
    "dropped_completion",
    "hung_abort",
    "wrong_membership",
};

constexpr std::string_view kAtPlain[] = {"init", "connect", "abort", "rebuild", "random"};
constexpr std::string_view kAtNumbered[] = {"iteration", "collective", "backward", "epoch",
                                            "replay"};
constexpr std::string_view kAtPlaces[] = {"before:join_exit", "before:finalize"};

// What a kind needs further: FaultSpec::amounts[key].
enum class Unit { kNumber, kBytes, kSeconds };
struct AmountInfo {
  std::string_view fault;
  std::string_view key;
  Unit unit;
  double usual;  // not a number: it must be written
  double min;
  double max;
  std::string_view remedy;
};
constexpr double kMustBeSaid = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostBytes = 1e15;
constexpr double kMostSeconds = 1e9;
constexpr AmountInfo kAmounts[] = {
    {"cpu_hog", "processes", Unit::kNumber, 3, 1, 64, "write as in processes = 3, 1 to 64"},
    {"cpu_throttle", "share", Unit::kNumber, 0.1, 0.005, 0.99,
     "write the part of the time that the rank may run, as in share = 0.1 (0.005 to 0.99)"},
    {"memory_pressure", "bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes,
     "write what is left, as in bytes = \"16M\""},
    {"shm_full", "bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes,
     "write what is left, as in bytes = \"64K\""},
    {"low_memlock", "bytes", Unit::kBytes, kMustBeSaid, 0, kMostBytes,
     "write the limit, as in bytes = \"64K\""},
    {"fd_exhaustion", "descriptors", Unit::kNumber, 0, 0, 1e6,
     "write how many are left, as in descriptors = 2"},
    {"clock_jump", "by", Unit::kSeconds, kMustBeSaid, -kMostSeconds, kMostSeconds,
     "write as in by = \"1h\" or by = \"-90s\""},
};

bool Contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsCount(std::string_view text) {
  return !text.empty() && text.size() < 19 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// With a unit, so that nobody has to guess it.
std::optional<double> SecondsIn(std::string_view text) {
  if (text.empty() || IsCount(text.substr(text.size() - 1))) return std::nullopt;
  const Result<double> seconds = ParseSeconds("", text);
  return seconds.ok() ? std::optional(*seconds) : std::nullopt;
}

bool IsMoment(std::string_view at) {
  if (Contains(kAtPlain, at) || Contains(kAtPlaces, at)) return true;
  const std::size_t colon = at.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view number = at.substr(colon + 1);
  if (at.substr(0, colon) == "time") return SecondsIn(number).has_value();
  return Contains(kAtNumbered, at.substr(0, colon)) && IsCount(number);
}

std::optional<double> AmountIn(const toml::node& node, Unit unit) {
  if (unit != Unit::kSeconds && node.is_number()) return node.value<double>();
  const std::optional<std::string_view> text = node.value<std::string_view>();
  if (!text || unit == Unit::kNumber) return std::nullopt;
  if (unit == Unit::kBytes) {
    const Result<std::int64_t> bytes = ParseBytes("", *text);
    return bytes.ok() ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
  }
  const bool back = text->starts_with('-');
  const std::optional<double> seconds = SecondsIn(text->substr(back ? 1 : 0));
  return seconds && back ? -*seconds : seconds;
}

void ReadAmounts(TomlFields& fields, FaultSpec& fault) {
  for (const AmountInfo& info : kAmounts) {
    if (info.fault != fault.kind) continue;
    const toml::node* node = fields.Find(info.key);
    if (node == nullptr) {
      if (std::isnan(info.usual)) {
        fields.Wrong(info.key, fmt::format("missing; {}", info.remedy));
      }
      fault.amounts[std::string(info.key)] = info.usual;
      continue;
    }
    const std::optional<double> amount = AmountIn(*node, info.unit);
    if (!amount || *amount < info.min || *amount > info.max) {
      fields.Wrong(info.key, fmt::format("out of place; {}", info.remedy));
    } else {
      fault.amounts[std::string(info.key)] = *amount;
    }
  }
}

// variables = ["NAME=VALUE"] of `environment`.
void ReadVariables(TomlFields& fields, FaultSpec& fault) {
  constexpr std::string_view kRemedy = "write as in variables = [\"NAME=VALUE\"]";
  if (fault.kind != "environment") return;
  const toml::node* node = fields.Find("variables");
  if (node == nullptr || !node->is_array() || node->as_array()->empty()) {
    return fields.Wrong("variables", fmt::format("missing or no list; {}", kRemedy));
  }
  for (const toml::node& item : *node->as_array()) {
    const std::string text = item.value_or(std::string());
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || text.starts_with("LOCKSTEP_WORKER=")) {
      return fields.Wrong("variables", fmt::format("'{}' is none; {}", text, kRemedy));
    }
    fault.variables.push_back(text);
  }
}

void ReadMoment(TomlFields& fields, FaultSpec& fault) {
  if (!fields.Has("at")) fields.Wrong("at", "missing; write when, as \"iteration:3\"");
  if (fields.Read("at", fault.at) && !IsMoment(fault.at)) {
    fields.Wrong("at",
                 fmt::format("'{}' is no moment; write init, connect, abort, rebuild, random, "
                             "time:0.5s, iteration:3, "
                             "collective:7, backward:2, epoch:1, replay:4, before:join_exit or "
                             "before:finalize",
                             fault.at));
  } else if (fault.kind == "environment" && fault.at != "init") {
    fields.Wrong("at", "a process has its environment from the start; write at = \"init\"");
  }
  std::string duration;
  if (!fields.Read("duration", duration)) return;
  fault.duration_seconds = SecondsIn(duration);
  if (!fault.duration_seconds) {
    fields.Wrong("duration", fmt::format("'{}' is no time; write as in \"100ms\"", duration));
  }
}

}  // namespace

FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes) {
  TomlFields fields(table, path, mistakes);
  FaultSpec fault;
  fault.line = LineOf(table);
  if (!fields.Has("kind")) fields.Wrong("kind", "missing; a fault needs a kind, as \"kill\"");
  if (const auto kind = fields.ReadName("kind", kFaults)) fault.kind = kFaults[*kind];
  if (IsLinkFault(fault.kind)) {
    ReadLink(fields, fault, ranks);
    ReadMoment(fields, fault);
    fields.RejectTheRest();
    return fault;
  }
  std::vector<std::int64_t> several;
  fields.ReadList("ranks", several, {0, ranks - 1});
  fault.ranks.assign(several.begin(), several.end());
  std::int64_t rank = 0;
  if (fields.Read("rank", rank, {0, ranks - 1})) fault.ranks.push_back(static_cast<int>(rank));
  if (fields.Has("rank") && fields.Has("ranks")) {
    fields.Wrong("rank", "both rank and ranks; write one of them");
  } else if (!fields.Has("rank") && !fields.Has("ranks")) {
    fields.Wrong("rank", "missing; write rank = 1 or ranks = [0, 1]");
  }
  ReadMoment(fields, fault);
  ReadAmounts(fields, fault);
  ReadVariables(fields, fault);
  fields.RejectTheRest();
  return fault;
}

}  // namespace lockstep::stress::scenario
