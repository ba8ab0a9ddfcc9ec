// Reads typed fields of a TOML table and remembers which keys were asked for, so that all others
// can be refused. A mistake keeps the place of the key in the file, where a user looks for it.
#include "core/base/toml_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/nearest.h"

namespace lockstep {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

std::string Describe(TomlRange range) {
  if (range.max == kNoLimit) return fmt::format("at least {}", range.min);
  return fmt::format("from {} to {}", range.min, range.max);
}

// The line of a key, which is where a user looks for it.
std::int64_t LineOfKey(const toml::table& table, std::string_view key) {
  for (const auto& [name, node] : table) {
    if (name.str() != key) continue;
    return name.source().begin ? name.source().begin.line : LineOf(node);
  }
  return LineOf(table);
}

}  // namespace

void TomlMistakes::Add(std::int64_t line, std::string_view key, std::string_view what) {
  if (line_ && *line_ <= line) return;
  line_ = line;
  message_ = key.empty() ? fmt::format("{}:{}: {}", origin_, line, what)
                         : fmt::format("{}:{}: key {}: {}", origin_, line, key, what);
}

Status TomlMistakes::status() const { return line_ ? InvalidInput(message_) : OkStatus(); }

std::string_view KindOf(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

std::string DescribeUnknown(std::string_view text, std::span<const std::string_view> names) {
  const std::string_view nearest = NearestName(text, names);
  if (!nearest.empty()) return fmt::format("'{}' is unknown; did you mean '{}'?", text, nearest);
  return fmt::format("'{}' is unknown; choose from {}", text, fmt::join(names, ", "));
}

std::int64_t LineOf(const toml::node& node) {
  return std::max<std::int64_t>(1, node.source().begin.line);
}

std::string TomlFields::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::node* TomlFields::Find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  return table_.get(key);
}

void TomlFields::Wrong(std::string_view key, std::string_view what) {
  mistakes_.Add(LineOfKey(table_, key), PathOf(key), what);
}

void TomlFields::WrongType(const toml::node& node, std::string_view key, std::string_view right) {
  mistakes_.Add(LineOf(node), PathOf(key), fmt::format("{}; write {}", KindOf(node), right));
}

template <typename T>
bool TomlFields::ReadAs(const toml::node& node, std::string_view key, std::string_view right,
                        T& target) {
  const toml::value<T>* const value = node.as<T>();
  if (value == nullptr) return WrongType(node, key, right), false;
  target = value->get();
  return true;
}

bool TomlFields::Read(std::string_view key, bool& target) {
  const toml::node* node = Find(key);
  return node != nullptr && ReadAs(*node, key, "true or false", target);
}

bool TomlFields::Read(std::string_view key, std::string& target) {
  const toml::node* node = Find(key);
  return node != nullptr && ReadAs(*node, key, "a string in quotes", target);
}

bool TomlFields::ReadInt(const toml::node& node, std::string_view key, TomlRange range,
                         std::string_view right, std::int64_t& target) {
  std::int64_t value = 0;
  if (!ReadAs(node, key, right, value)) return false;
  if (value < range.min || value > range.max) {
    mistakes_.Add(LineOf(node), PathOf(key),
                  fmt::format("{} is out of range; it must be {}", value, Describe(range)));
    return false;
  }
  target = value;
  return true;
}

bool TomlFields::Read(std::string_view key, std::int64_t& target, TomlRange range) {
  const toml::node* node = Find(key);
  return node != nullptr && ReadInt(*node, key, range, "an integer", target);
}

bool TomlFields::Read(std::string_view key, int& target, TomlRange range) {
  std::int64_t value = 0;
  if (!Read(key, value, range)) return false;
  target = static_cast<int>(value);
  return true;
}

bool TomlFields::Read(std::string_view key, double& target, double min, double max) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (!node->is_number()) return WrongType(*node, key, "a number"), false;
  const double value = *node->value<double>();
  if (!(value >= min && value <= max)) {
    Wrong(key, fmt::format("{} is out of range; it must be from {} to {}", value, min, max));
    return false;
  }
  target = value;
  return true;
}

bool TomlFields::ReadList(std::string_view key, std::vector<std::int64_t>& target,
                          TomlRange range) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  if (!node->is_array()) return WrongType(*node, key, "a list of integers"), false;
  std::vector<std::int64_t> items;
  for (const toml::node& item : *node->as_array()) {
    if (!ReadInt(item, key, range, "a list of integers", items.emplace_back())) return false;
  }
  target = std::move(items);
  return true;
}

template <typename T, typename ReadOne>
bool TomlFields::ReadOneOrAll(std::string_view key, int ranks, std::vector<T>& target,
                              const ReadOne& read_one) {
  const toml::node* node = Find(key);
  if (node == nullptr) return false;
  std::vector<T> items;
  if (const toml::array* list = node->as_array()) {
    for (const toml::node& item : *list) {
      if (!read_one(item, items.emplace_back())) return false;
    }
  } else {
    T value{};
    if (!read_one(*node, value)) return false;
    items.assign(static_cast<std::size_t>(ranks), value);
  }
  if (items.size() != static_cast<std::size_t>(ranks)) {
    mistakes_.Add(LineOf(*node), PathOf(key),
                  fmt::format("a list of {} for {} ranks; write {} items, or one value for all",
                              items.size(), ranks, ranks));
    return false;
  }
  target = std::move(items);
  return true;
}

bool TomlFields::ReadPerRank(std::string_view key, int ranks, std::vector<std::int64_t>& target,
                             TomlRange range) {
  return ReadOneOrAll(key, ranks, target, [&](const toml::node& node, std::int64_t& value) {
    return ReadInt(node, key, range, "an integer, or a list with one for each rank", value);
  });
}

bool TomlFields::ReadPerRank(std::string_view key, int ranks, std::vector<std::string>& target) {
  return ReadOneOrAll(key, ranks, target, [&](const toml::node& node, std::string& value) {
    return ReadAs(node, key, "a string, or a list with one for each rank", value);
  });
}

std::optional<std::size_t> TomlFields::ReadName(std::string_view key,
                                                std::span<const std::string_view> names) {
  std::string name;
  if (!Read(key, name)) return std::nullopt;
  const auto known = std::ranges::find(names, name);
  if (known != names.end()) return static_cast<std::size_t>(known - names.begin());
  Wrong(key, DescribeUnknown(name, names));
  return std::nullopt;
}

const toml::table* TomlFields::FindTable(std::string_view key) {
  const toml::node* node = Find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) return WrongType(*node, key, "a table"), nullptr;
  return node->as_table();
}

void TomlFields::RejectTheRest() {
  for (const auto& [name, node] : table_) {
    const std::string_view key = name.str();
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    const std::string_view nearest = NearestName(key, names);
    Wrong(key, nearest.empty() ? fmt::format("unknown; keys here: {}", fmt::join(names, ", "))
                               : fmt::format("unknown; did you mean '{}'?", nearest));
  }
}

}  // namespace lockstep
