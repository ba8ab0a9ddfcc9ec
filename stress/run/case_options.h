// By what a case is run and judged.
#ifndef LOCKSTEP_STRESS_RUN_CASE_OPTIONS_H_
#define LOCKSTEP_STRESS_RUN_CASE_OPTIONS_H_

#include <string>

namespace lockstep::stress::run {

struct CaseOptions {
  std::string backend = "gloo";
  double deadline_seconds = 5;  // silence of a rank that is taken for a hang
  double limit_seconds = 300;   // of one case
};

}  // namespace lockstep::stress::run

#endif  // LOCKSTEP_STRESS_RUN_CASE_OPTIONS_H_
