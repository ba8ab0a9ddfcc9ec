// Pairs the cases of both sides by program, name, backend, ranks and work, or without those that
// are compared across. A launch that failed before any of its cases becomes a case of its own, so
// that it is not overlooked.
#include "results/compare/case_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "results/compare/min_effect.h"

namespace lockstep::results::compare {
namespace {

// In names of cases that are replayed, and of steps that are called and timed as lightly.
constexpr std::string_view kGraphMarks[] = {"/cuda_graph", "/no_timeline"};

// Options of the work that what is compared across decides.
const std::map<std::string, std::set<std::string>> kDecided = {
    {"ranks", {"pairs", "everyone"}}, {"cuda_graph", {"cuda_graph", "timeline"}}};

CaseFigures WholeLaunch(const Launch& launch) {
  return CaseFigures{
      .name = kWholeLaunch, .verdict = launch.verdict, .outcome = launch.outcome, .is_trial = true};
}

bool FailedAsAWhole(const Launch& launch) {
  return launch.verdict != verdict::Verdict::kPass &&
         std::all_of(launch.cases.begin(), launch.cases.end(), [](const CaseFigures& figures) {
           return figures.verdict == verdict::Verdict::kPass;
         });
}

// Its program and what that was to measure, backend and ranks included.
std::string PlanOf(const Launch& launch) {
  return fmt::format("{}\n{}", launch.program, FactOf(launch, "plan"));
}

}  // namespace

CaseGroups::CaseGroups(std::span<const Launch> base, std::span<const Launch> candidate,
                       const std::string& cases, const std::set<std::string>& across)
    : cases_(cases), across_(across) {
  FindFields(base);
  FindFields(candidate);
  AddLaunchesThatFailed(base, candidate);
  Add(base, &CaseGroup::base);
  Add(candidate, &CaseGroup::candidate);
  CountLaunches(base, &CaseGroup::base);
  CountLaunches(candidate, &CaseGroup::candidate);
}

std::string CaseGroups::KeyOf(const Launch& launch, const CaseFigures& figures) const {
  std::string name = figures.name;
  for (const std::string_view mark : kGraphMarks) {
    const std::size_t at = across_.contains("cuda_graph") ? name.find(mark) : name.npos;
    if (at != name.npos) name.erase(at, mark.size());
  }
  return fmt::format("{}\n{}\n{}\n{}", across_.contains("program") ? "" : launch.program, name,
                     across_.contains("backend") ? "" : figures.backend,
                     across_.contains("ranks") ? 0 : figures.ranks);
}

void CaseGroups::FindFields(std::span<const Launch> launches) {
  for (const Launch& launch : launches) {
    for (const CaseFigures& figures : launch.cases) {
      std::set<std::string> own;
      const auto found = launch.planned.work.find(figures.name);
      if (found != launch.planned.work.end()) {
        for (const auto& [field, value] : found->second) own.insert(field);
      }
      const auto [fields, is_new] = fields_.try_emplace(KeyOf(launch, figures), own);
      if (!is_new) std::erase_if(fields->second, [&](auto& one) { return !own.contains(one); });
    }
  }
}

Work CaseGroups::WorkOf(const Launch& launch, const CaseFigures& figures) const {
  const auto fields = fields_.find(KeyOf(launch, figures));
  const auto found = launch.planned.work.find(figures.name);
  if (fields == fields_.end() || found == launch.planned.work.end()) return {};
  if (across_.contains("work")) return {};
  Work work = found->second;
  std::erase_if(work, [&](const auto& one) { return !fields->second.contains(one.first); });
  for (const auto& [across, decided] : kDecided) {
    if (!across_.contains(across)) continue;
    std::erase_if(work, [&](const auto& one) { return decided.contains(one.first); });
  }
  return work;
}

std::size_t CaseGroups::PlaceOf(const Launch& launch, const CaseFigures& figures) {
  const Work work = WorkOf(launch, figures);
  std::string key = KeyOf(launch, figures);
  for (const auto& [field, value] : work) key += fmt::format("\n{}={}", field, value);
  const auto [known, is_new] = places_.try_emplace(std::move(key), groups_.size());
  if (is_new) {
    groups_.push_back({launch.program, figures.name, figures.backend, figures.ranks, work, {}, {}});
  }
  return known->second;
}

void CaseGroups::Add(std::span<const Launch> launches, GroupSide CaseGroup::*side) {
  for (const Launch& launch : launches) {
    for (const CaseFigures& figures : launch.cases) {
      if (!MatchesGlob(cases_, figures.name)) continue;
      GroupSide& group = groups_[PlaceOf(launch, figures)].*side;
      group.launches.push_back(&launch);
      group.figures.push_back(&figures);
    }
  }
}

// A launch of another plan could not have the case: it is of another backend, step or sweep.
void CaseGroups::CountLaunches(std::span<const Launch> launches, GroupSide CaseGroup::*side) {
  std::map<std::string, std::size_t> programs, plans;
  for (const Launch& launch : launches) {
    ++programs[launch.program];
    ++plans[PlanOf(launch)];
  }
  for (CaseGroup& group : groups_) {
    GroupSide& own = group.*side;
    std::set<std::string> having;
    for (const Launch* launch : own.launches) having.insert(PlanOf(*launch));
    for (const std::string& plan : having) own.expected += plans[plan];
    if (having.empty()) {
      own.expected = across_.contains("program") ? launches.size() : programs[group.program];
    }
  }
}

void CaseGroups::AddLaunchesThatFailed(std::span<const Launch> base,
                                       std::span<const Launch> candidate) {
  std::set<std::string> programs;
  for (const std::span<const Launch>& side : {base, candidate}) {
    for (const Launch& launch : side) {
      if (FailedAsAWhole(launch)) programs.insert(launch.program);
    }
  }
  whole_launches_.reserve(base.size() + candidate.size());  // pointers into it stay valid
  for (const auto& [launches, side] :
       {std::pair(base, &CaseGroup::base), std::pair(candidate, &CaseGroup::candidate)}) {
    for (const Launch& launch : launches) {
      if (!programs.contains(launch.program)) continue;
      whole_launches_.push_back(WholeLaunch(launch));
      GroupSide& group = groups_[PlaceOf(launch, whole_launches_.back())].*side;
      group.launches.push_back(&launch);
      group.figures.push_back(&whole_launches_.back());
    }
  }
}

}  // namespace lockstep::results::compare
