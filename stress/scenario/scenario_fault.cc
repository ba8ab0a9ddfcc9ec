// Reads the [[fault]] tables of a scenario by the registry of faults. The registry says what a kind
// needs, in which units and bounds, and when it may come.
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/units.h"
#include "stress/faults/fault_registry.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
namespace {

using stress::faults::FaultInfo;
using stress::faults::FaultParameter;
using stress::faults::FaultScope;
using stress::faults::Unit;

// With a unit, so that nobody has to guess it.
std::optional<double> SecondsIn(std::string_view text) {
  if (text.empty() || (text.back() >= '0' && text.back() <= '9')) return std::nullopt;
  const Result<double> seconds = ParseSeconds("", text);
  return seconds.ok() ? std::optional(*seconds) : std::nullopt;
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

void ReadAmounts(TomlFields& fields, const FaultInfo& info, FaultSpec& fault) {
  for (const FaultParameter& parameter : info.parameters) {
    const toml::node* node = fields.Find(parameter.name);
    if (node == nullptr) {
      if (std::isnan(parameter.usual)) {
        fields.Wrong(parameter.name, "missing; {}", parameter.remedy);
      }
      fault.amounts[std::string(parameter.name)] = parameter.usual;
      continue;
    }
    const std::optional<double> amount = AmountIn(*node, parameter.unit);
    if (!amount || *amount < parameter.least || *amount > parameter.most) {
      fields.Wrong(parameter.name, "out of place; {}", parameter.remedy);
    } else {
      fault.amounts[std::string(parameter.name)] = *amount;
    }
  }
}

// variables = ["NAME=VALUE"] of `environment`.
void ReadVariables(TomlFields& fields, FaultSpec& fault) {
  constexpr std::string_view kRemedy = "write as in variables = [\"NAME=VALUE\"]";
  if (fault.kind != "environment") return;
  const toml::node* node = fields.Find("variables");
  if (node == nullptr || !node->is_array() || node->as_array()->empty()) {
    return fields.Wrong("variables", "missing or no list; {}", kRemedy);
  }
  for (const toml::node& item : *node->as_array()) {
    const std::string text = item.value_or(std::string());
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || text.starts_with("LOCKSTEP_WORKER=")) {
      return fields.Wrong("variables", "'{}' is none; {}", text, kRemedy);
    }
    fault.variables.push_back(text);
  }
}

void ReadMoment(TomlFields& fields, const FaultInfo* info, FaultSpec& fault) {
  if (!fields.Has("at")) fields.Wrong("at", "missing; write when, as \"iteration:3\"");
  if (fields.Read("at", fault.at) && fault.at != stress::faults::kRandomMoment &&
      !stress::faults::ParseMoment(fault.at)) {
    fields.Wrong("at", "'{}' is no moment; write {}", fault.at, stress::faults::ListMoments());
  } else if (info != nullptr && !info->Allows(fault.at)) {
    fields.Wrong("at", "a process has its environment from the start; write at = \"init\"");
  }
  std::string duration;
  if (!fields.Read("duration", duration)) return;
  fault.duration_seconds = SecondsIn(duration);
  if (!fault.duration_seconds) {
    fields.Wrong("duration", "'{}' is no time; write as in \"100ms\"", duration);
  }
}

}  // namespace

FaultSpec ReadFault(const toml::table& table, const std::string& path, int ranks,
                    TomlMistakes& mistakes) {
  TomlFields fields(table, path, mistakes);
  FaultSpec fault;
  fault.line = LineOf(table);
  if (!fields.Has("kind")) fields.Wrong("kind", "missing; a fault needs a kind, as \"kill\"");
  const FaultInfo* info = nullptr;
  if (const auto kind = fields.ReadName("kind", stress::faults::NamesOfFaults())) {
    info = &stress::faults::AllFaults()[*kind];
    fault.kind = info->name;
  }
  if (info != nullptr && info->scope != FaultScope::kRank) {
    ReadLink(fields, *info, fault, ranks);
    ReadMoment(fields, info, fault);
    fields.RejectTheRest();
    return fault;
  }
  std::vector<std::int64_t> several;
  if (fields.ReadList("ranks", several, {0, ranks - 1}) && several.empty()) {
    fields.Wrong("ranks", "an empty list; write rank = 1 or ranks = [0, 1]");
  }
  fault.ranks.assign(several.begin(), several.end());
  int rank = 0;
  if (fields.Read("rank", rank, {0, ranks - 1})) fault.ranks.push_back(rank);
  if (fields.Has("rank") && fields.Has("ranks")) {
    fields.Wrong("rank", "both rank and ranks; write one of them");
  } else if (!fields.Has("rank") && !fields.Has("ranks")) {
    fields.Wrong("rank", "missing; write rank = 1 or ranks = [0, 1]");
  }
  ReadMoment(fields, info, fault);
  if (info != nullptr) ReadAmounts(fields, *info, fault);
  ReadVariables(fields, fault);
  fields.RejectTheRest();
  return fault;
}

}  // namespace lockstep::stress::scenario
