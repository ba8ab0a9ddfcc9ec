// Containers of a document live in two lists and are referred to by number, which makes copies
// free. JSON is built from the parser's events with its own stack, so deep nesting cannot overflow
// ours.
#include "core/flight/document.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace lockstep::flight {
namespace {

// Builds the document from the parser's events; nesting lives in a vector, not on the stack.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  JsonBuilder(FlightDocument& document, const std::string& name)
      : document_(document), name_(name) {}

  bool null() override { return Put(FlightValue()); }
  bool boolean(bool value) override { return Put(FlightBool(value)); }
  bool number_integer(number_integer_t value) override { return Put(FlightInteger(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return Put(FlightInteger(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Put(FlightReal(value));
  }
  bool string(string_t& value) override { return Put(document_.AddText(std::move(value))); }
  bool binary(binary_t&) override { return Fail("holds binary data"); }
  bool start_object(std::size_t) override {
    FlightValue value;
    return document_.AddDictionary(value) ? Open(value) : Fail("holds too many objects");
  }
  bool start_array(std::size_t) override {
    FlightValue value;
    return document_.AddList(value) ? Open(value) : Fail("holds too many lists");
  }
  bool key(string_t& value) override {
    keys_.back() = document_.AddText(std::move(value));
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(fmt::format("is no valid JSON at offset {}", position));
  }

  const std::string& error() const { return error_; }

 private:
  static constexpr std::size_t kDepthMax = 64;

  bool Fail(const std::string& what) {
    error_ =
        fmt::format("{}: {}; take the dump again, or name the directory of another", name_, what);
    return false;
  }
  bool Put(FlightValue value) {
    if (open_.empty()) {
      document_.root = value;
    } else if (open_.back().Is(FlightValue::Kind::kList)) {
      document_.ListOf(open_.back()).push_back(value);
    } else {
      document_.DictionaryOf(open_.back()).emplace_back(keys_.back(), value);
    }
    return true;
  }
  bool Open(FlightValue value) {
    if (open_.size() == kDepthMax) {
      return Fail(fmt::format("is nested more than {} deep", kDepthMax));
    }
    Put(value);
    open_.push_back(value);
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  FlightDocument& document_;
  const std::string& name_;
  std::vector<FlightValue> open_;
  std::vector<FlightValue> keys_;  // of the open dictionaries
  std::string error_;
};

}  // namespace

bool FlightDocument::Add(auto& containers, FlightValue::Kind kind, FlightValue& value) {
  if (lists_.size() + dictionaries_.size() >= kContainersMax) return false;
  value = {.kind = kind, .integer = static_cast<std::int64_t>(containers.size())};
  containers.emplace_back();
  return true;
}

bool FlightDocument::AddList(FlightValue& value) {
  return Add(lists_, FlightValue::Kind::kList, value);
}

bool FlightDocument::AddDictionary(FlightValue& value) {
  return Add(dictionaries_, FlightValue::Kind::kDictionary, value);
}

FlightValue FlightDocument::AddText(std::string text) { return FlightText(Own(std::move(text))); }

std::string_view FlightDocument::Own(std::string bytes) {
  texts_.push_back(std::move(bytes));
  return texts_.back();
}

Result<FlightDocument> ReadJsonDocument(const std::string& bytes, const std::string& name) {
  FlightDocument document;
  JsonBuilder builder(document, name);
  if (!nlohmann::json::sax_parse(bytes, &builder)) return InvalidInput(builder.error());
  return document;
}

}  // namespace lockstep::flight
