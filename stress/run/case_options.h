// By what a case is run and judged.
#pragma once

#include <fmt/core.h>

#include <string>

namespace lockstep::stress::run {

struct CaseOptions {
  std::string backend = "gloo";
  double deadline_seconds = 5;  // silence of a rank that is taken for a hang
  double limit_seconds = 300;   // of one case
};

// Why a case is cut short.
inline constexpr char kEndedBySignal[] = "ended by a signal";
inline std::string NotOverAfter(double limit_seconds) {
  return fmt::format("not over after {} s (--limit)", limit_seconds);
}

}  // namespace lockstep::stress::run
