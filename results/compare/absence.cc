// Tells a case that lost its times from one that newer plans leave out, by the plans in the files
// and the commands that made them. Where neither tells, the case is lost.
#include "results/compare/absence.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "results/compare/min_effect.h"

namespace lockstep::results::compare {
namespace {

const CaseFigures* FiguresIn(const Launch& launch, const CaseOfProgram& wanted) {
  if (launch.program != wanted.program) return nullptr;
  for (const CaseFigures& one : launch.cases) {
    if (one.name == wanted.name && one.backend == wanted.backend && one.ranks == wanted.ranks) {
      return &one;
    }
  }
  return nullptr;
}

// Whether the launch was to measure it, as far as is known.
bool Plans(const Launch& launch, const CaseOfProgram& wanted) {
  if (launch.program != wanted.program) return false;
  if (FiguresIn(launch, wanted) != nullptr) return true;
  const Planned& planned = launch.planned;
  if (!planned.known) return launch.cases.empty() && launch.verdict != verdict::Verdict::kPass;
  return planned.backend == wanted.backend && planned.ranks == wanted.ranks &&
         planned.cases.contains(wanted.name);
}

// That time ran out before the case is no failure; that a launch was lost as a whole is one.
bool Failed(const Launch& launch, const CaseFigures* figures) {
  if (figures == nullptr) return launch.verdict != verdict::Verdict::kPass;
  if (figures->verdict == verdict::Verdict::kFail) return true;
  return figures->verdict != verdict::Verdict::kPass && !HasTime(launch);
}

// Trials of stress have no history.
bool IsBenchmark(const Launch& launch) {
  return launch.planned.known ||
         std::ranges::any_of(launch.cases, [](const CaseFigures& one) { return !one.is_trial; });
}

// Its cases do not tell that it failed.
bool FailedBeyondItsCases(const Launch& launch, std::span<const CaseOfProgram> known) {
  if (!IsBenchmark(launch) || launch.verdict == verdict::Verdict::kPass) return false;
  if (launch.cases.empty()) {  // a history tells it
    return std::ranges::none_of(known,
                                [&](const CaseOfProgram& one) { return Plans(launch, one); });
  }
  return launch.verdict == verdict::Verdict::kFail &&
         std::ranges::none_of(launch.cases, [](const CaseFigures& one) {
           return one.verdict == verdict::Verdict::kFail;
         });
}

// What was there while the case was measured.
struct Before {
  std::set<std::string> commands;       // of all launches of the program
  std::set<std::string> commands_with;  // of those that had the case
  std::set<std::string> cases;          // that were measured beside it
};

Before BeforeOf(std::span<const LaunchesOfNight> nights, const CaseOfProgram& wanted) {
  Before before;
  for (const LaunchesOfNight& night : nights) {
    for (const Launch* launch : night) {
      if (launch->program != wanted.program) continue;
      const std::string command(FactOf(*launch, "command"));
      before.commands.insert(command);
      if (FiguresIn(*launch, wanted) == nullptr) continue;
      before.commands_with.insert(command);
      for (const CaseFigures& one : launch->cases) before.cases.insert(one.name);
    }
  }
  return before;
}

bool TookThePlace(const Launch& launch, const Before& before, const CaseOfProgram& wanted) {
  const Planned& planned = launch.planned;
  if (launch.program != wanted.program || !planned.known) return false;
  const std::string command(FactOf(launch, "command"));
  if (before.commands_with.contains(command)) return true;
  const bool shares = std::ranges::any_of(
      planned.cases, [&](const std::string& name) { return before.cases.contains(name); });
  return shares && !before.commands.contains(command) && planned.backend == wanted.backend &&
         planned.ranks == wanted.ranks;
}

}  // namespace

std::string FailureIn(const LaunchesOfNight& night, const CaseOfProgram& wanted) {
  for (const Launch* launch : night) {
    if (!Plans(*launch, wanted)) continue;
    if (const CaseFigures* figures = FiguresIn(*launch, wanted)) {
      return figures->outcome == "pass" ? "not measured" : figures->outcome;
    }
    if (launch->verdict != verdict::Verdict::kPass) return launch->outcome;
  }
  return "";
}

std::string FailuresIn(const LaunchesOfNight& night, const CaseOfProgram& wanted) {
  std::string first;
  int failed = 0, launches = 0;
  for (const Launch* launch : night) {
    if (!Plans(*launch, wanted)) continue;
    ++launches;
    const CaseFigures* figures = FiguresIn(*launch, wanted);
    if (!Failed(*launch, figures)) continue;
    if (++failed == 1) first = figures == nullptr ? launch->outcome : figures->outcome;
  }
  return failed == 0 ? "" : fmt::format("{} in {} of {} launches", first, failed, launches);
}

std::vector<std::string> FailuresOfNoHistory(const std::string& machine,
                                             const LaunchesOfNight& night,
                                             std::span<const CaseOfProgram> known,
                                             const std::string& cases) {
  std::vector<std::string> failures;
  std::vector<CaseOfProgram> told(known.begin(), known.end());
  for (const Launch* launch : night) {
    if (FailedBeyondItsCases(*launch, known)) {
      failures.push_back(fmt::format("{} {} on {}: {}", launch->started_at, launch->program,
                                     machine, launch->outcome));
    }
    for (const CaseFigures& one : launch->cases) {
      const CaseOfProgram key{launch->program, one.name, one.backend, one.ranks};
      if (one.is_trial || one.verdict == verdict::Verdict::kPass) continue;
      if (!MatchesGlob(cases, one.name) || std::ranges::find(told, key) != told.end()) continue;
      told.push_back(key);
      failures.push_back(
          fmt::format("{} {} ({} x {}) on {}: never had a time; in the newest night: {}",
                      key.program, key.name, key.backend, key.ranks, machine, one.outcome));
    }
  }
  return failures;
}

bool WasLeftOut(std::span<const LaunchesOfNight> until, std::span<const LaunchesOfNight> since,
                const CaseOfProgram& wanted) {
  const Before before = BeforeOf(until, wanted);
  bool replaced = false;
  for (const LaunchesOfNight& night : since) {
    for (const Launch* launch : night) {
      if (Plans(*launch, wanted)) return false;
      replaced = replaced || TookThePlace(*launch, before, wanted);
    }
  }
  return replaced;
}

}  // namespace lockstep::results::compare
