// The keys of faults that make a link between ranks or hosts bad. All times and rates need a unit,
// and lists of ranks are no option: a link has two ends.
#include "stress/scenario/scenario_link.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/units.h"

namespace lockstep::stress::scenario {
namespace {

constexpr double kMostSeconds = 60;
constexpr double kMostLoss = 0.9;
constexpr std::int64_t kLeastRate = 1024;

// With a unit, so that nobody has to guess it.
void ReadTime(TomlFields& fields, std::string_view key, FaultSpec& fault) {
  std::string text;
  if (!fields.Read(key, text)) return;
  const bool unit = !text.empty() && text.back() == 's';
  const Result<double> seconds = ParseSeconds("", text);
  if (!unit || !seconds.ok() || *seconds > kMostSeconds) {
    fields.Wrong(key, fmt::format("'{}' is no time up to 60s; write as in \"10ms\"", text));
    return;
  }
  fault.amounts[std::string(key)] = *seconds;
}

void ReadRate(TomlFields& fields, FaultSpec& fault) {
  std::string text;
  if (!fields.Read("rate", text)) return;
  const Result<std::int64_t> rate = ParseBytes("", text);
  if (!rate.ok() || *rate < kLeastRate) {
    fields.Wrong("rate", fmt::format("'{}' is no rate of 1K or more; write bytes per second as in "
                                     "\"1MiB\"",
                                     text));
    return;
  }
  fault.amounts["rate"] = static_cast<double>(*rate);
}

void ReadShare(TomlFields& fields, std::string_view key, FaultSpec& fault) {
  double share = 0;
  if (fields.Read(key, share, 0, kMostLoss)) fault.amounts[std::string(key)] = share;
}

void ReadBlock(TomlFields& fields, FaultSpec& fault) {
  constexpr std::string_view kAnswers[] = {"silence", "refuse"};
  std::int64_t port = 0;
  if (fields.Read("port", port, {1, 65535})) fault.amounts["port"] = static_cast<double>(port);
  fault.amounts["refuse"] = fields.ReadName("answer", kAnswers) == std::size_t{1} ? 1 : 0;
}

// Every kind needs what it is named after, and takes nothing else.
void ReadAmounts(TomlFields& fields, FaultSpec& fault) {
  const std::string_view kind = std::string_view(fault.kind).substr(fault.kind.find('_') + 1);
  const auto need = [&](std::string_view key, std::string_view remedy) {
    if (!fields.Has(key)) fields.Wrong(key, fmt::format("missing; {}", remedy));
  };
  if (kind == "delay") {
    need("delay", "write as in delay = \"10ms\"");
    ReadTime(fields, "delay", fault);
    ReadTime(fields, "jitter", fault);
  } else if (kind == "loss") {
    need("loss", "write the part of the segments that is lost, as in loss = 0.01");
    ReadShare(fields, "loss", fault);
  } else if (kind == "reorder") {
    need("share", "write the part of the packets that comes late, as in share = 0.25");
    need("delay", "write how much later, as in delay = \"10ms\"");
    ReadShare(fields, "share", fault);
    ReadTime(fields, "delay", fault);
  } else if (kind == "block") {
    ReadBlock(fields, fault);
  } else if (kind == "rate") {
    need("rate", "write bytes per second as in rate = \"1MiB\"");
    ReadRate(fields, fault);
  }
}

}  // namespace

void ReadLink(TomlFields& fields, FaultSpec& fault, int ranks) {
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
  ReadAmounts(fields, fault);
  if (fault.kind != "link_reset" && fault.kind != "network_reset") return;
  if (direction == std::size_t{1}) {
    fields.Wrong("direction", "a connection that is reset has ended for both; remove it");
  }
  if (fields.Has("duration")) fields.Wrong("duration", "a reset does not end; remove it");
}

}  // namespace lockstep::stress::scenario
