// Why a history has no time any more, and what failed in a night. Pure.
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
  bool operator==(const CaseOfProgram&) const = default;
};

using LaunchesOfNight = std::vector<const Launch*>;  // in order of time

// What the night says of a case that has no time in it; "" where it was not to be measured.
std::string FailureIn(const LaunchesOfNight& night, const CaseOfProgram& wanted);

// What failed of a case in the night, "fail: data_corrupt in 1 of 3 launches", whatever its other
// launches say; "" where nothing did.
std::string FailuresIn(const LaunchesOfNight& night, const CaseOfProgram& wanted);

// A line for each failure of the night that no history tells, of which there are those of `known`:
// of a case that never had a time, and of a launch all of whose cases passed, or that had none.
std::vector<std::string> FailuresOfNoHistory(const std::string& machine,
                                             const LaunchesOfNight& night,
                                             std::span<const CaseOfProgram> known,
                                             const std::string& cases);

// Whether launches with another plan took the place of those that had the case, so that it is not
// lost. That it is absent does not tell: a launch that should have it may leave no file any more.
// A launch took the place of another by its command; or it has a new one, and shares a case.
bool WasLeftOut(std::span<const LaunchesOfNight> until, std::span<const LaunchesOfNight> since,
                const CaseOfProgram& wanted);

}  // namespace lockstep::results::compare
