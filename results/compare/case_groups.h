// The same case in the launches of both sides. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "results/compare/figures.h"

namespace lockstep::results::compare {

// The case of a launch that did not pass although its cases did.
inline constexpr const char* kWholeLaunch = "(launch)";

// One side's launches that have the case; both lists in the same order.
struct GroupSide {
  std::vector<const Launch*> launches;
  std::vector<const CaseFigures*> figures;
  // Launches that should have the case: of every plan of which one has it. Without any, all of the
  // program.
  std::size_t expected = 0;
};

struct CaseGroup {
  std::string program, name, backend;
  int ranks = 0;
  Work work;
  GroupSide base, candidate;
};

// In the order in which the cases first appear. `cases` is a glob; `across` as in CompareOptions.
// Points into the launches. A program of which a launch did not pass
// although its cases did has a case "(launch)" without a time.
class CaseGroups {
 public:
  CaseGroups(std::span<const Launch> base, std::span<const Launch> candidate,
             const std::string& cases, const std::set<std::string>& across);
  const std::vector<CaseGroup>& groups() const { return groups_; }

 private:
  void FindFields(std::span<const Launch> launches);
  void Add(std::span<const Launch> launches, GroupSide CaseGroup::*side);
  void CountLaunches(std::span<const Launch> launches, GroupSide CaseGroup::*side);
  void AddLaunchesThatFailed(std::span<const Launch> base, std::span<const Launch> candidate);
  std::string KeyOf(const Launch& launch, const CaseFigures& figures) const;
  Work WorkOf(const Launch& launch, const CaseFigures& figures) const;
  std::size_t PlaceOf(const Launch& launch, const CaseFigures& figures);

  const std::string cases_;
  const std::set<std::string> across_;
  std::vector<CaseGroup> groups_;
  // By KeyOf, the fields that all launches tell of the work: plans of another version have others.
  std::map<std::string, std::set<std::string>> fields_;
  std::map<std::string, std::size_t> places_;
  std::vector<CaseFigures> whole_launches_;
};

}  // namespace lockstep::results::compare
