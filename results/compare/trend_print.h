// A trend as text, for people and for programs.
#pragma once

#include <string>

#include "results/compare/trend.h"

namespace lockstep::results::compare {

// The headline, level changes (newest first) with what changed with them, slow machines, the newest
// outliers, then a line a history with a small curve.
std::string FormatTrendTable(const Trend& trend);
std::string FormatTrendMarkdown(const Trend& trend);
// One object with every night of every history; what is not a number is null.
std::string FormatTrendJson(const Trend& trend);
// A test a history, one a machine, one a file that was not read, and one for the whole. Failures
// are what makes the exit code 5; a history that is too short is skipped.
std::string FormatTrendJUnit(const Trend& trend);

}  // namespace lockstep::results::compare
