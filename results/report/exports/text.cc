#include "results/report/exports/text.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/base/wrap.h"
#include "results/report/figures.h"

namespace lockstep::results::report::exports {

// nlohmann::json knows how: written with replacement and read back, a text is valid.
std::string Utf8(std::string_view text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

// XML 1.0 allows no other control characters, not even as references.
std::string Xml(std::string_view text) {
  constexpr std::string_view kReserved = "&<>\"\n";
  constexpr const char* kReferences[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#10;"};
  std::string escaped;
  for (const char c : Utf8(text)) {
    if (const std::size_t at = kReserved.find(c); at != std::string_view::npos) {
      escaped += kReferences[at];
    } else {
      escaped += c >= 0 && c < 32 && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

void JUnitSuite::Add(const std::string& group, const std::string& name, std::string_view element,
                     const std::string& message) {
  ++count;
  failures += element == "failure";
  errors += element == "error";
  skipped += element == "skipped";
  tests += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", Xml(OneLine(group)),
                       Xml(OneLine(name)));
  tests += element.empty() ? "/>\n"
                           : fmt::format(">\n    <{} message=\"{}\"/>\n  </testcase>\n", element,
                                         Xml(OneLine(message)));
}

std::string JUnitSuite::Format(std::string_view name, bool with_skipped) const {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\"{}>\n"
      "{}</testsuite>\n</testsuites>\n",
      name, count, failures, errors, with_skipped ? fmt::format(" skipped=\"{}\"", skipped) : "",
      tests);
}

}  // namespace lockstep::results::report::exports
