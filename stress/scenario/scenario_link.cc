// The keys of faults that make a link between ranks or hosts bad. All times and rates need a unit,
// and lists of ranks are no option: a link has two ends.
#include "stress/scenario/scenario_tables.h"

#include <cmath>
#include <string>
#include <string_view>

#include "core/base/units.h"

namespace lockstep::stress::scenario {
namespace {

using stress::faults::FaultInfo;
using stress::faults::FaultParameter;
using stress::faults::Unit;

// With a unit, so that nobody has to guess it.
void ReadTime(TomlFields& fields, const FaultParameter& parameter, FaultSpec& fault) {
  std::string text;
  if (!fields.Read(parameter.name, text)) return;
  const bool unit = !text.empty() && text.back() == 's';
  const Result<double> seconds = ParseSeconds("", text);
  if (!unit || !seconds.ok() || *seconds > parameter.most) {
    fields.Wrong(parameter.name, "'{}' is no time up to {}s; write as in \"10ms\"", text,
                 parameter.most);
    return;
  }
  fault.amounts[std::string(parameter.name)] = *seconds;
}

void ReadRate(TomlFields& fields, const FaultParameter& parameter, FaultSpec& fault) {
  std::string text;
  if (!fields.Read(parameter.name, text)) return;
  const Result<std::int64_t> rate = ParseBytes("", text);
  if (!rate.ok() || static_cast<double>(*rate) < parameter.least) {
    fields.Wrong(parameter.name,
                 "'{}' is no rate of 1K or more; write bytes per second as in \"1MiB\"", text);
    return;
  }
  fault.amounts[std::string(parameter.name)] = static_cast<double>(*rate);
}

void ReadParameter(TomlFields& fields, const FaultParameter& parameter, FaultSpec& fault) {
  const std::string key(parameter.name);
  switch (parameter.unit) {
    case Unit::kLinkTime:
      return ReadTime(fields, parameter, fault);
    case Unit::kRate:
      return ReadRate(fields, parameter, fault);
    case Unit::kPort: {
      std::int64_t port = 0;
      const TomlRange bounds = {static_cast<std::int64_t>(parameter.least),
                                static_cast<std::int64_t>(parameter.most)};
      if (fields.Read(key, port, bounds)) fault.amounts[key] = static_cast<double>(port);
      return;
    }
    case Unit::kAnswer: {
      constexpr std::string_view kAnswers[] = {"silence", "refuse"};
      fault.amounts["refuse"] = fields.ReadName(key, kAnswers) == std::size_t{1} ? 1 : 0;
      return;
    }
    default: {
      double share = 0;
      if (fields.Read(key, share, parameter.least, parameter.most)) fault.amounts[key] = share;
    }
  }
}

}  // namespace

void ReadLink(TomlFields& fields, const FaultInfo& info, FaultSpec& fault, int ranks) {
  std::int64_t from = 0, to = 0;
  if (ranks < 2) fields.Wrong("kind", "one rank has no links; write more ranks");
  if (!fields.Has("from")) fields.Wrong("from", "missing; write a rank, as in from = 0");
  if (fields.Read("from", from, {0, ranks - 1})) fault.ranks.assign(1, static_cast<int>(from));
  if (fields.Read("to", to, {0, ranks - 1})) {
    if (to == from) fields.Wrong("to", "the same as from; a link has two ends");
    fault.amounts["to"] = static_cast<double>(to);
  }
  constexpr std::string_view kDirections[] = {"both", "one_way"};
  const auto direction = fields.ReadName("direction", kDirections);
  fault.amounts["one_way"] = direction == std::size_t{1} ? 1 : 0;
  // Every kind needs what it is named after, and takes nothing else.
  for (const FaultParameter& parameter : info.parameters) {
    if (!std::isnan(parameter.usual) || fields.Has(parameter.name)) continue;
    fields.Wrong(parameter.name, "missing; {}", parameter.remedy);
  }
  for (const FaultParameter& parameter : info.parameters) ReadParameter(fields, parameter, fault);
  if (!info.at_once()) return;
  if (direction == std::size_t{1}) {
    fields.Wrong("direction", "a connection that is reset has ended for both; remove it");
  }
  if (fields.Has("duration")) fields.Wrong("duration", "a reset does not end; remove it");
}

}  // namespace lockstep::stress::scenario
