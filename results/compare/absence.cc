// Tells a case that lost its times from one that newer plans leave out, by the plans in the files
// and the commands that made them. Where neither tells, the case is lost.
#include "results/compare/absence.h"

#include <algorithm>
#include <set>

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
