// Reads rules such as "all_reduce/*=3%" from options and TOML files. The last rule that matches a
// case holds. Patterns are the shell's, by fnmatch.
#include "results/compare/min_effect.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <toml++/toml.h>

#include <charconv>
#include <optional>

#include "core/base/file_text.h"

namespace lockstep::results::compare {
namespace {

Status FileError(const std::string& path, std::int64_t line, std::string_view what) {
  return InvalidInput("{}:{}: {}; write min_effect = [\"2%\", \"all_reduce/*=3%\"]", path, line,
                      what);
}

}  // namespace

bool MatchesGlob(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

Result<double> ParseFraction(std::string_view option, std::string_view text, bool zero) {
  const bool percent = text.ends_with('%');
  const std::string_view number = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  const double fraction = percent ? value / 100 : value;
  const bool in_range = fraction >= 1e-4 && fraction < 10;
  if (!is_number || !(in_range || (zero && fraction == 0))) {
    return InvalidInput(
        "{}: '{}' is no part of a time; give one such as 5% or 0.05, from {} to 999%", option, text,
        zero ? "0" : "0.01%");
  }
  return fraction;
}

Status MinEffects::Add(std::string_view rule) {
  const std::size_t equals = rule.rfind('=');  // names contain = at times, effects never
  const bool for_all = equals == std::string_view::npos;
  const std::string pattern(for_all ? "*" : rule.substr(0, equals));
  if (pattern.empty()) {
    return InvalidInput(
        "--min-effect: '{}' names no case before '='; write 'all_reduce/*=3%', or 3% for all",
        rule);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const double effect, ParseFraction("--min-effect", for_all ? rule : rule.substr(equals + 1)));
  rules_.push_back({pattern, effect});
  return OkStatus();
}

Status MinEffects::AddFile(const std::string& path) {
  const std::optional<std::string> text = ReadText(path);
  if (!text) {
    return InvalidInput("{}: cannot be read; name a TOML file with min_effect", path);
  }
  toml::table table;
  try {
    table = toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    return FileError(path, error.source().begin.line, error.description());
  }
  for (const auto& [key, node] : table) {
    const toml::array* rules = node.as_array();
    if (key.str() != "min_effect" || rules == nullptr) {
      return FileError(path, node.source().begin.line,
                       fmt::format("'{}' is not a list min_effect", key.str()));
    }
    for (const toml::node& rule : *rules) {
      const auto text_of_rule = rule.value<std::string>();
      const Status status = text_of_rule ? Add(*text_of_rule) : InvalidInput("a rule is no text");
      if (!status.ok()) return FileError(path, rule.source().begin.line, status.message());
    }
  }
  return OkStatus();
}

double MinEffects::Of(const std::string& case_name) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (MatchesGlob(rule->pattern, case_name)) return rule->effect;
  }
  return kDefault;
}

}  // namespace lockstep::results::compare
