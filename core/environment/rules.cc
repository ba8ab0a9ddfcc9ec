// Turns rules.toml into rules, with every mistake named by file, line and key. The file is built
// into the program; that the built-in one is right is checked when it is first used.
#include "core/environment/rules.h"

#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/base/toml_fields.h"

namespace lockstep::environment {

extern const char kBuiltInRules[];  // rules.toml, made a literal by the build

namespace {

using Test = Condition::Test;

constexpr std::string_view kTests[] = {
    "<",     ">",        "==",        "!=",      "contains",
    "lacks", "version<", "version>=", "present", "absent"};  // by Test
constexpr std::string_view kLevels[] = {"note", "warning", "problem"};

// "FACT OPERATOR VALUE"; the value may hold spaces.
std::optional<Condition> ConditionOf(const std::string& text) {
  std::istringstream words(text);
  Condition condition;
  std::string test;
  if (!(words >> condition.fact >> test)) return std::nullopt;
  std::getline(words >> std::ws, condition.value);
  const auto known = std::ranges::find(kTests, test);
  if (known == std::end(kTests)) return std::nullopt;
  condition.test = static_cast<Test>(known - std::begin(kTests));
  const bool needs_value = condition.test != Test::kPresent && condition.test != Test::kAbsent;
  if (needs_value == condition.value.empty()) return std::nullopt;
  return condition;
}

void ReadConditions(TomlFields& fields, Rule& rule) {
  const toml::node* node = fields.Find("when");
  const toml::array* list = node != nullptr ? node->as_array() : nullptr;
  if (list == nullptr || list->empty()) {
    return fields.Wrong("when", "must be a list of conditions, \"FACT OPERATOR VALUE\"");
  }
  for (const toml::node& item : *list) {
    const auto text = item.value<std::string>();
    const auto condition = text ? ConditionOf(*text) : std::nullopt;
    if (!condition) {
      return fields.Wrong("when",
                          "'{}' is no condition; write \"FACT OPERATOR VALUE\" "
                          "with < > == != contains lacks version< version>= "
                          "present or absent",
                          text.value_or(""));
    }
    rule.when.push_back(*condition);
  }
}

Rule ReadRule(const toml::table& table, TomlMistakes& mistakes) {
  TomlFields fields(table, "rule", mistakes);
  Rule rule;
  if (!fields.Read("id", rule.id)) fields.Wrong("id", "is missing");
  ReadConditions(fields, rule);
  if (const auto level = fields.ReadName("level", kLevels)) {
    rule.level = static_cast<Level>(*level);
  }
  fields.ReadList("cause", rule.causes, {1, 31});
  if (!fields.Read("message", rule.message)) fields.Wrong("message", "is missing");
  if (!fields.Read("remedy", rule.remedy)) fields.Wrong("remedy", "is missing");
  fields.Read("source", rule.source);
  fields.RejectTheRest();
  return rule;
}

}  // namespace

std::string_view NameOf(Level level) { return kLevels[static_cast<std::size_t>(level)]; }

Result<std::vector<Rule>> ParseRules(std::string_view text, std::string origin) {
  toml::table table;
  try {
    table = toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return InvalidInput("{}:{}: {}; mend the TOML", origin, error.source().begin.line,
                        error.description());
  }
  TomlMistakes mistakes(origin);
  TomlFields fields(table, "", mistakes);
  std::vector<Rule> rules;
  const toml::node* node = fields.Find("rule");
  const toml::array* list = node != nullptr ? node->as_array() : nullptr;
  if (list == nullptr) {
    fields.Wrong("rule", "must be tables [[rule]]");
  } else {
    for (const toml::node& item : *list) {
      if (const toml::table* rule = item.as_table()) rules.push_back(ReadRule(*rule, mistakes));
    }
  }
  fields.RejectTheRest();
  LOCKSTEP_RETURN_IF_ERROR(mistakes.status());
  return rules;
}

std::vector<Rule> BuiltInRules() {
  Result<std::vector<Rule>> rules = ParseRules(kBuiltInRules, "rules.toml");
  LOCKSTEP_CHECK(rules.ok(), "the rules that the program carries are right");
  return *std::move(rules);
}

}  // namespace lockstep::environment
