// Text where UTF-8 or XML is required.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::results::report::exports {

// Of machines and libraries, with U+FFFD in the place of what is no UTF-8.
std::string Utf8(std::string_view text);

// For an element's text or an attribute in double quotes; what is no UTF-8 is replaced.
std::string Xml(std::string_view text);

// A suite of JUnit's tests without texts of their own; names and messages become one line.
struct JUnitSuite {
  std::string tests;
  int count = 0, failures = 0, errors = 0, skipped = 0;

  // `element`: "failure", "error" or "skipped"; "" of a test that passed.
  void Add(const std::string& group, const std::string& name, std::string_view element = "",
           const std::string& message = "");
  std::string Format(std::string_view name, bool with_skipped) const;
};

}  // namespace lockstep::results::report::exports
