#include "stress/nccl_net/net_fault.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace lockstep::stress::nccl_net {
namespace {

bool ParseNumber(std::string_view text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

bool ParseAmount(std::string_view word, NetFault& fault) {
  const std::size_t equals = word.find('=');
  std::int64_t number = 0;
  if (equals == std::string_view::npos || !ParseNumber(word.substr(equals + 1), number)) {
    return false;
  }
  const std::string_view key = word.substr(0, equals);
  if (key == "after") fault.after = static_cast<std::uint64_t>(number);
  if (key == "ms") fault.ms = number;
  return key == "after" || key == "ms";
}

}  // namespace

bool ParseNetFault(const std::string& text, NetFault& fault) {
  using Kind = NetFault::Kind;
  static constexpr std::pair<std::string_view, Kind> kKinds[] = {{"", Kind::kNone},
                                                                 {"delay", Kind::kDelay},
                                                                 {"drop", Kind::kDrop},
                                                                 {"fail", Kind::kFail},
                                                                 {"stall", Kind::kStall}};
  std::string_view rest = text;
  const std::string_view name = rest.substr(0, rest.find(':'));
  NetFault parsed;
  bool known = false;
  for (const auto& [word, kind] : kKinds) {
    if (word != name) continue;
    parsed.kind = kind;
    known = true;
  }
  rest.remove_prefix(name.size());
  while (known && !rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find(':'));
    if (!ParseAmount(word, parsed)) return false;
    rest.remove_prefix(word.size());
  }
  if (known) fault = parsed;
  return known;
}

}  // namespace lockstep::stress::nccl_net
