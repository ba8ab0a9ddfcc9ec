// Asks every condition of every rule, with three answers: yes, no, unknown. A rule holds only if
// all its conditions do; an unknown one makes it unchecked, never true. Rules with a star are tried
// once for each part that the facts have.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "core/base/units.h"
#include "core/environment/rules.h"

namespace lockstep::environment {
namespace {

// kUnknown: the fact is missing, or says "unknown".
enum class Answer { kYes, kNo, kUnknown };

// A number, "64MiB", or "unlimited", which is more than any.
std::optional<double> NumberOf(std::string_view text) {
  if (text == "unlimited") return std::numeric_limits<double>::infinity();
  if (const Result<std::int64_t> bytes = ParseBytes("", text); bytes.ok()) {
    return static_cast<double>(*bytes);
  }
  return std::nullopt;
}

// What follows `prefix` and precedes `suffix` in a fact's path, if it is one part.
std::optional<std::string> Star(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::nullopt;
  const std::string_view prefix = pattern.substr(0, star), suffix = pattern.substr(star + 1);
  if (path.size() <= prefix.size() + suffix.size() || !path.starts_with(prefix) ||
      !path.ends_with(suffix)) {
    return std::nullopt;
  }
  const std::string_view part =
      path.substr(prefix.size(), path.size() - prefix.size() - suffix.size());
  if (part.find('/') != std::string_view::npos) return std::nullopt;
  return std::string(part);
}

std::string Replace(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

Answer Compare(const std::string& value, Condition::Test test, const std::string& wanted) {
  using Test = Condition::Test;
  const auto yes = [](bool holds) { return holds ? Answer::kYes : Answer::kNo; };
  switch (test) {
    case Test::kEquals:
      return yes(value == wanted);
    case Test::kDiffers:
      return yes(value != wanted);
    case Test::kContains:
      return yes(value.find(wanted) != std::string::npos);
    case Test::kLacks:
      return yes(value.find(wanted) == std::string::npos);
    case Test::kOlder:
      return yes(CompareVersions(value, wanted) < 0);
    case Test::kNotOlder:
      return yes(CompareVersions(value, wanted) >= 0);
    default:
      break;
  }
  const std::optional<double> left = NumberOf(value), right = NumberOf(wanted);
  if (!left || !right) return Answer::kUnknown;
  return yes(test == Test::kBelow ? *left < *right : *left > *right);
}

Answer Ask(const Facts& facts, const Condition& condition) {
  const std::string* value = Find(facts, condition.fact);
  if (condition.test == Condition::Test::kPresent) {
    return value != nullptr ? Answer::kYes : Answer::kNo;
  }
  if (condition.test == Condition::Test::kAbsent) {
    return value == nullptr ? Answer::kYes : Answer::kNo;
  }
  // A variable that is not set is not unknown.
  if (value == nullptr && condition.fact.starts_with("variables/")) return Answer::kNo;
  if (value == nullptr || value->starts_with("unknown")) return Answer::kUnknown;
  const std::string* other = Find(facts, condition.value);
  return Compare(*value, condition.test, other != nullptr ? *other : condition.value);
}

// The rule with its stars replaced by one part.
Rule Bound(Rule rule, const std::string& part) {
  for (Condition& condition : rule.when) condition.fact = Replace(condition.fact, "*", part);
  return rule;
}

// One that is false makes the rule not apply, whatever is unknown.
Answer Holds(const Facts& facts, const Rule& rule) {
  Answer all = Answer::kYes;
  for (const Condition& condition : rule.when) {
    const Answer one = Ask(facts, condition);
    if (one == Answer::kNo) return one;
    if (one == Answer::kUnknown) all = one;
  }
  return all;
}

Ailment AilmentOf(const Facts& facts, const Rule& rule) {
  const std::string* value = Find(facts, rule.when.front().fact);
  const auto fill = [&](const std::string& text) {
    return Replace(Replace(text, "{value}", value != nullptr ? *value : ""), "{fact}",
                   rule.when.front().fact);
  };
  return {rule.id, rule.level, rule.causes, fill(rule.message), fill(rule.remedy), rule.source};
}

std::vector<Rule> Bindings(const Facts& facts, const Rule& rule) {
  const std::string& first = rule.when.front().fact;
  if (first.find('*') == std::string::npos) return {rule};
  std::set<std::string> parts;
  for (const auto& [path, value] : facts) {
    if (const std::optional<std::string> part = Star(first, path)) parts.insert(*part);
  }
  std::vector<Rule> rules;
  for (const std::string& part : parts) rules.push_back(Bound(rule, part));
  return rules;
}

}  // namespace

Checkup CheckUp(const Facts& facts, const std::vector<Rule>& rules) {
  Checkup checkup;
  for (const Rule& rule : rules) {
    bool unknown = false;
    for (const Rule& bound : Bindings(facts, rule)) {
      const Answer answer = Holds(facts, bound);
      unknown = unknown || answer == Answer::kUnknown;
      if (answer == Answer::kYes) checkup.ailments.push_back(AilmentOf(facts, bound));
    }
    if (unknown) checkup.unchecked.push_back(rule.id);
    if (!unknown) ++checkup.checked;
  }
  std::ranges::stable_sort(checkup.ailments, std::ranges::greater(), &Ailment::level);
  return checkup;
}

int CompareVersions(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view& text) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string part(text.substr(0, dot));
    text.remove_prefix(std::min(dot + 1, text.size()));
    return std::atoll(part.c_str());
  };
  while (!a.empty() || !b.empty()) {
    const long long left = next(a), right = next(b);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

}  // namespace lockstep::environment
