// Judging a machine by its facts: rules are data (rules.toml), the judgement is a pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/environment/facts.h"

namespace lockstep::environment {

enum class Level { kNote, kWarning, kProblem };
std::string_view NameOf(Level level);

struct Condition {
  enum class Test {
    kBelow,
    kAbove,
    kEquals,
    kDiffers,
    kContains,
    kLacks,
    kOlder,
    kNotOlder,
    kPresent,
    kAbsent
  };
  std::string fact;  // may hold one '*', for one part of the path
  Test test = Test::kPresent;
  std::string value;  // or the path of a fact that has it
};

struct Rule {
  std::string id;
  std::vector<Condition> when;  // all must hold
  Level level = Level::kWarning;
  std::vector<std::int64_t> causes;  // of the catalogue of root causes
  std::string message;               // {value} and {fact}: of the first condition
  std::string remedy;
  std::string source;
};

// kInvalidInput with file, line and key of the first mistake.
Result<std::vector<Rule>> ParseRules(std::string_view text, std::string origin);
// Those of core/environment/rules.toml, which the program carries.
std::vector<Rule> BuiltInRules();

// A rule that holds here.
struct Ailment {
  std::string rule;
  Level level = Level::kNote;
  std::vector<std::int64_t> causes;
  std::string message;
  std::string remedy;
  std::string source;
};

struct Checkup {
  std::vector<Ailment> ailments;       // the worst first
  std::vector<std::string> unchecked;  // rules that need a fact which is unknown here
  std::size_t checked = 0;
};

Checkup CheckUp(const Facts& facts, const std::vector<Rule>& rules);

// -1, 0, 1: dotted numbers, "2.28.9" > "2.28"; a part that is no number counts as 0.
int CompareVersions(std::string_view a, std::string_view b);

}  // namespace lockstep::environment
