// Reading TOML tables so that every mistake of a user is one line with the file, the line, the key,
// what is wrong and what is right.
#pragma once

#include <fmt/core.h>
#include <toml++/toml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace lockstep {

// The mistakes of one file; the one on the first line is told.
class TomlMistakes {
 public:
  explicit TomlMistakes(std::string origin) : origin_(std::move(origin)) {}
  // `key` is dotted; empty: of the file as a whole.
  void Add(std::int64_t line, std::string_view key, std::string_view what);
  template <typename First, typename... More>
  void Add(std::int64_t line, std::string_view key, fmt::format_string<First, More...> format,
           First&& first, More&&... more) {
    Add(line, key, fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
  }
  bool none() const { return !line_; }
  // Ok, or kInvalidInput: "FILE:LINE: key KEY: what is wrong; remedy".
  Status status() const;

 private:
  std::string origin_;
  std::optional<std::int64_t> line_;
  std::string message_;
};

// The inclusive range of an integer field, or of the items of a list.
struct TomlRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// The fields of one table. Every Read leaves `target` alone and returns false when the key is
// absent or its value wrong; the latter is added to the mistakes. What was never asked for is
// unknown: RejectTheRest, which must be called last.
class TomlFields {
 public:
  // `path` is the table's dotted name ("workload"); empty for the file. Both must outlive this.
  TomlFields(const toml::table& table, std::string path, TomlMistakes& mistakes)
      : table_(table), path_(std::move(path)), mistakes_(mistakes) {}

  bool Has(std::string_view key) const { return table_.contains(key); }
  bool Read(std::string_view key, bool& target);
  bool Read(std::string_view key, std::string& target);
  bool Read(std::string_view key, std::int64_t& target, TomlRange range = {});
  bool Read(std::string_view key, int& target, TomlRange range);
  bool Read(std::string_view key, double& target, double min, double max);
  bool ReadList(std::string_view key, std::vector<std::int64_t>& target, TomlRange range = {});
  // One value for all `ranks` or a list with one for each; `target` gets `ranks` items.
  bool ReadPerRank(std::string_view key, int ranks, std::vector<std::int64_t>& target,
                   TomlRange range = {});
  bool ReadPerRank(std::string_view key, int ranks, std::vector<std::string>& target);
  // One of `names`; returns its index.
  std::optional<std::size_t> ReadName(std::string_view key,
                                      std::span<const std::string_view> names);
  template <typename Enum>
  bool ReadEnum(std::string_view key, std::span<const std::string_view> names, Enum& target) {
    const std::optional<std::size_t> index = ReadName(key, names);
    if (index) target = static_cast<Enum>(*index);
    return index.has_value();
  }
  // A value whose form the caller checks, or nullptr.
  const toml::node* Find(std::string_view key);
  const toml::table* FindTable(std::string_view key);

  // A mistake at the key (at the table when the key is absent).
  void Wrong(std::string_view key, std::string_view what);
  template <typename First, typename... More>
  void Wrong(std::string_view key, fmt::format_string<First, More...> format, First&& first,
             More&&... more) {
    Wrong(key, fmt::format(format, std::forward<First>(first), std::forward<More>(more)...));
  }
  void RejectTheRest();

  std::string PathOf(std::string_view key) const;
  TomlMistakes& mistakes() { return mistakes_; }

 private:
  void WrongType(const toml::node& node, std::string_view key, std::string_view right);
  // Of a value that is there; `right`: what a mistake asks for.
  template <typename T>
  bool ReadAs(const toml::node& node, std::string_view key, std::string_view right, T& target);
  bool ReadInt(const toml::node& node, std::string_view key, TomlRange range,
               std::string_view right, std::int64_t& target);
  template <typename T, typename ReadOne>
  bool ReadOneOrAll(std::string_view key, int ranks, std::vector<T>& target,
                    const ReadOne& read_one);

  const toml::table& table_;
  std::string path_;
  TomlMistakes& mistakes_;
  std::vector<std::string> known_;
};

// "'kil' is unknown; did you mean 'kill'?", or which names there are when none is near.
std::string DescribeUnknown(std::string_view text, std::span<const std::string_view> names);

// "an integer", "a list" …
std::string_view KindOf(const toml::node& node);
std::int64_t LineOf(const toml::node& node);

}  // namespace lockstep
