// Why a history has no time any more. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/compare/figures.h"

namespace lockstep::results::compare {

// What a history is of, on one machine.
struct CaseOfProgram {
  std::string program, name, backend;
  int ranks = 0;
};

using LaunchesOfNight = std::vector<const Launch*>;  // in order of time

// What the night says of a case that has no time in it; "" where it was not to be measured.
std::string FailureIn(const LaunchesOfNight& night, const CaseOfProgram& wanted);

// Whether launches with another plan took the place of those that had the case, so that it is not
// lost. That it is absent does not tell: a launch that should have it may leave no file any more.
// A launch took the place of another by its command; or it has a new one, and shares a case.
bool WasLeftOut(std::span<const LaunchesOfNight> until, std::span<const LaunchesOfNight> since,
                const CaseOfProgram& wanted);

}  // namespace lockstep::results::compare
