// Launches as nights of machines. Pure.
#ifndef LOCKSTEP_RESULTS_COMPARE_NIGHTS_H_
#define LOCKSTEP_RESULTS_COMPARE_NIGHTS_H_

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/figures.h"

namespace lockstep::results::compare {

using LaunchesOfNight = std::vector<const Launch*>;  // in order of time

// The host names of its ranks, "a+b"; "unknown" without any.
std::string MachineOf(const Launch& launch);

// Seconds since 1970 of "2026-11-21T10:44:25Z".
std::optional<double> SecondsOf(const std::string& started_at);

// The nights of each machine, oldest first. Launches without a time are left out.
std::map<std::string, std::vector<LaunchesOfNight>> NightsByMachine(
    std::span<const Launch> launches, double gap_seconds);

}  // namespace lockstep::results::compare

#endif  // LOCKSTEP_RESULTS_COMPARE_NIGHTS_H_
