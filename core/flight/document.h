// What a dump holds, as plain data: numbers, texts, lists and dictionaries. Containers are shared
// (a pickle names one object many times) and are referred to by index, so that copies are free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"

namespace lockstep::flight {

struct FlightValue {
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kReal, kText, kList, kDictionary };
  Kind kind = Kind::kNone;
  std::uint32_t length = 0;  // kText: bytes
  union {
    std::int64_t integer = 0;  // kBool: 0 or 1; kList and kDictionary: index in the document
    double real;
    const char* text;  // of the document, not terminated
  };

  bool Is(Kind other) const { return kind == other; }
  std::string_view AsText() const {
    return kind == Kind::kText ? std::string_view(text, length) : std::string_view();
  }
};

inline FlightValue FlightInteger(std::int64_t value) {
  return {.kind = FlightValue::Kind::kInteger, .integer = value};
}
inline FlightValue FlightBool(bool value) {
  return {.kind = FlightValue::Kind::kBool, .integer = value};
}
inline FlightValue FlightReal(double value) {
  return {.kind = FlightValue::Kind::kReal, .real = value};
}
// `text` outlives the value and is shorter than 4 GiB.
inline FlightValue FlightText(std::string_view text) {
  return {.kind = FlightValue::Kind::kText,
          .length = static_cast<std::uint32_t>(text.size()),
          .text = text.data()};
}

// Tuples and sets are lists too. Owns all that its values refer to; moving it keeps them valid.
class FlightDocument {
 public:
  using List = std::vector<FlightValue>;
  using Dictionary = std::vector<std::pair<FlightValue, FlightValue>>;
  // Ten times what a ring of 20,000 calls has, and less than 400 MB.
  static constexpr std::size_t kContainersMax = std::size_t{1} << 22;

  FlightValue root;

  // False: there are too many.
  bool AddList(FlightValue& value);
  bool AddDictionary(FlightValue& value);
  // Keeps a copy of the text.
  FlightValue AddText(std::string text);
  // Keeps the bytes that texts lie in.
  std::string_view Own(std::string bytes);

  // The value must be of that kind, and of this document.
  List& ListOf(const FlightValue& value) { return lists_[static_cast<std::size_t>(value.integer)]; }
  const List& ListOf(const FlightValue& value) const {
    return lists_[static_cast<std::size_t>(value.integer)];
  }
  Dictionary& DictionaryOf(const FlightValue& value) {
    return dictionaries_[static_cast<std::size_t>(value.integer)];
  }
  const Dictionary& DictionaryOf(const FlightValue& value) const {
    return dictionaries_[static_cast<std::size_t>(value.integer)];
  }
  std::size_t dictionaries() const { return dictionaries_.size(); }

 private:
  bool Add(auto& containers, FlightValue::Kind kind, FlightValue& value);

  std::deque<List> lists_;
  std::deque<Dictionary> dictionaries_;
  std::deque<std::string> texts_;
};

// Reads a pickle of protocol 2 to 5 that is data only. Nothing of it is ever run: an opcode that
// names, makes or calls an object (GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, EXT…, PERSID…) is an
// error with the offset. Time and memory are linear in the bytes; nothing is recursive.
// Errors (kInvalidInput) are one line that begins with `name`.
Result<FlightDocument> ReadPickle(std::string bytes, const std::string& name);

// The same from JSON, at most 64 containers deep.
Result<FlightDocument> ReadJsonDocument(const std::string& bytes, const std::string& name);

}  // namespace lockstep::flight
