// Between C++ records and named values in a file. A record is described once (schema.h), and that
// description both writes and reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/collective/collective.h"
#include "core/verdict/judge.h"
#include "core/verdict/outcome.h"

namespace lockstep::results::store {

// What a description takes: the record, const when it is written.
template <typename T, typename Record>
concept Is = std::is_same_v<std::remove_const_t<T>, Record>;

// What an attribute or a cell of a table holds. Enumerators are stored by name.
using Value = std::variant<std::int32_t, std::int64_t, std::uint64_t, double, bool, std::string>;

inline std::string_view NameOf(collective::Blocking blocking) {
  return blocking == collective::Blocking::kBlocking ? "blocking" : "nonblocking";
}

inline std::string_view NameOf(verdict::ProcessState state) {
  constexpr std::string_view kNames[] = {"running", "stopped", "exited", "signalled", "lost"};
  return kNames[static_cast<std::size_t>(state)];
}

// The last enumerator of each stored enumeration: reading a name back tries all up to it.
template <typename E>
inline constexpr E kLast = E{};
template <>
inline constexpr collective::Blocking kLast<collective::Blocking> =
    collective::Blocking::kNonblocking;
template <>
inline constexpr collective::Collective kLast<collective::Collective> =
    collective::Collective::kRecv;
template <>
inline constexpr collective::DataType kLast<collective::DataType> = collective::kLastDataType;
template <>
inline constexpr verdict::Outcome kLast<verdict::Outcome> = verdict::Outcome::kCorrupt;
template <>
inline constexpr verdict::ProcessState kLast<verdict::ProcessState> = verdict::ProcessState::kLost;
template <>
inline constexpr collective::Reduction kLast<collective::Reduction> = collective::Reduction::kMax;
template <>
inline constexpr verdict::Verdict kLast<verdict::Verdict> = verdict::Verdict::kUnknown;

// "0,3" and back.
std::string JoinRanks(const std::vector<int>& ranks);
bool SplitRanks(std::string_view text, std::vector<int>& ranks);

template <typename T>
Value ToValue(const T& field) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(NameOf(field));
  } else if constexpr (std::is_same_v<T, verdict::FindingCause>) {
    return std::string(field.name());
  } else if constexpr (std::is_same_v<T, verdict::Headline>) {
    return field.text();
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return JoinRanks(field);
  } else {
    return field;
  }
}

// False: the file's text is no name of an enumerator, or no list of ranks.
template <typename T>
bool FromValue(const Value& value, T& field) {
  if constexpr (std::is_enum_v<T>) {
    for (int i = 0; i <= static_cast<int>(kLast<T>); ++i) {
      field = static_cast<T>(i);
      if (NameOf(field) == std::get<std::string>(value)) return true;
    }
    return false;
  } else if constexpr (std::is_same_v<T, verdict::FindingCause>) {
    field = verdict::FindingCause::Named(std::get<std::string>(value));
    return true;
  } else if constexpr (std::is_same_v<T, verdict::Headline>) {
    field = verdict::Headline(std::get<std::string>(value));
    return true;
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return SplitRanks(std::get<std::string>(value), field);
  } else {
    field = std::get<T>(value);
    return true;
  }
}

// Where values go, and where they come from. Names and units are literals of the schema.
class ValueSink {
 public:
  virtual ~ValueSink() = default;
  virtual void Put(const char* name, const Value& value, const char* units) = 0;
  // What files of the same schema had not at first.
  virtual void PutLater(const char* name, const Value& value) { Put(name, value, ""); }
};
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  // The value of that name, of the same alternative as `like`; on an error `like` itself.
  virtual Value Get(const char* name, const Value& like) = 0;
  virtual void Refuse(const char* name, const Value& value) = 0;
  // Whether there is something to Get.
  virtual bool Has(const char*) { return true; }
};

// What the last unit in a name says: "latency_low_ns" is in ns. "" of names without one.
constexpr const char* UnitsOf(std::string_view name) {
  constexpr std::pair<std::string_view, const char*> kUnits[] = {
      {"ns", "ns"},  {"seconds", "s"},  {"gbps", "GB/s"},   {"bytes", "B"},
      {"mb", "MiB"}, {"ticks", "tick"}, {"ppm", "ppm"},     {"percent", "%"},
      {"mw", "mW"},  {"mhz", "MHz"},    {"celsius", "degC"}};
  while (!name.empty()) {
    const std::size_t word = name.rfind('_') + 1;  // npos + 1 is 0
    for (const auto& [unit, units] : kUnits) {
      if (name.substr(word) == unit) return units;
    }
    name = name.substr(0, word == 0 ? 0 : word - 1);
  }
  return "";
}

// The two visitors that a description is called with: fields("bytes", record.bytes). Units are said
// where the name does not tell them: fields("count", record.count, "element").
class Writing {
 public:
  explicit Writing(ValueSink& sink) : sink_(sink) {}
  template <typename T>
  void operator()(const char* name, const T& field, const char* units) {
    sink_.Put(name, ToValue(field), units);
  }
  template <typename T>
  void operator()(const char* name, const T& field) {
    (*this)(name, field, UnitsOf(name));
  }
  template <typename T>
  void Later(const char* name, const T& field) {
    sink_.PutLater(name, ToValue(field));
  }

 private:
  ValueSink& sink_;
};
class Reading {
 public:
  explicit Reading(ValueSource& source) : source_(source) {}
  template <typename T>
  void operator()(const char* name, T& field, const char* = "") {
    const Value value = source_.Get(name, ToValue(field));
    if (!FromValue(value, field)) source_.Refuse(name, value);
  }
  // What the file has not stays as it is.
  template <typename T>
  void Later(const char* name, T& field) {
    if (source_.Has(name)) (*this)(name, field);
  }

 private:
  ValueSource& source_;
};

}  // namespace lockstep::results::store
