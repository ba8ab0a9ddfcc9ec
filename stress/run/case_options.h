// By what a case is run and judged.
#pragma once

#include <string>

namespace lockstep::stress::run {

struct CaseOptions {
  std::string backend = "gloo";
  double deadline_seconds = 5;  // silence of a rank that is taken for a hang
  double limit_seconds = 300;   // of one case
};

}  // namespace lockstep::stress::run
