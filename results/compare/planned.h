// What a run was to measure, by the plan in its file. Pure.
#pragma once

#include <set>
#include <string>

namespace lockstep::results::compare {

struct Planned {
  bool known = false;  // false: the file has no such plan
  std::string backend;
  int ranks = 0;
  std::set<std::string> cases;    // without those that only a second pass may ask for
  std::set<std::string> by_mean;  // of whose visits the mean counts: their iterations are not alike
  bool calibrates = false;        // the first visit of each case, which has no figure then
};

// Of a benchmark's plan (bench/plan/plan_json.cc).
Planned PlannedBy(const std::string& plan_text);

}  // namespace lockstep::results::compare
