// What a run was to measure, by the plan in its file. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

namespace lockstep::results::compare {

// What decides what an iteration does and no name of a case tells: options of its step, its model's
// tensors, the sizes of its buckets, the root. Names and values as in the plan.
using Work = std::map<std::string, std::string>;

struct Planned {
  bool known = false;  // false: the file has no such plan
  std::string backend;
  int ranks = 0;
  std::set<std::string> cases;    // without those that only a second pass may ask for
  std::set<std::string> by_mean;  // of whose visits the mean counts: their iterations are not alike
  bool calibrates = false;        // the first visit of each case, which has no figure then
  std::map<std::string, Work> work = {};  // by the name of the case
};

// Of a benchmark's plan (bench/plan/plan_json.cc).
Planned PlannedBy(const std::string& plan_text);

}  // namespace lockstep::results::compare
