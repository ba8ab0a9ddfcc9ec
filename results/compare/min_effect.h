// From which change on a case counts: a rule for all, and others for cases of certain names. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace lockstep::results::compare {

class MinEffects {
 public:
  static constexpr double kDefault = 0.02;

  // "3%", "0.03", or for the cases that a glob matches "all_reduce/*=3%"; of several rules that
  // match, the last one added holds. Errors name --min-effect.
  Status Add(std::string_view rule);

  // A TOML file, in which rules stand as --min-effect takes them:
  //   min_effect = ["2%", "all_reduce/*=3%"]
  Status AddFile(const std::string& path);

  // The least change of a case that counts, as a part of its time: 0.02.
  double Of(const std::string& case_name) const;

 private:
  struct Rule {
    std::string pattern;
    double effect = kDefault;
  };
  std::vector<Rule> rules_;
};

// 0.05 of "5%" or "0.05"; at least 0.0001 (or 0 where `zero` is right) and less than 10.
Result<double> ParseFraction(std::string_view option, std::string_view text, bool zero = false);

// Whether a name matches a shell pattern: * ? [...]; a slash is as any other character.
bool MatchesGlob(const std::string& pattern, const std::string& name);

}  // namespace lockstep::results::compare
