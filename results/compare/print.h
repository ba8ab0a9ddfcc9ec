// Comparisons and summaries of launches as text, for people and for programs.
#pragma once

#include <string>

#include "results/compare/compare.h"
#include "results/compare/over_launches.h"

namespace lockstep::results::compare {

// The headline, a row a case (what needs attention first), what ambiguous and missing cases need,
// differences of the environment, how the verdicts are made.
std::string FormatTable(const LaunchComparison& comparison);
// The headline, and a row a case: 80 columns unless a name is long.
std::string FormatTable(const LaunchSummary& summary);
// A comparison for a pull request or an issue.
std::string FormatMarkdown(const LaunchComparison& comparison);
// One object; what is not a number is null.
std::string FormatJson(const LaunchComparison& comparison);
// A test case a case: slower and worse outcomes are failures, ambiguous and missing ones errors.
std::string FormatJUnit(const LaunchComparison& comparison);

}  // namespace lockstep::results::compare
