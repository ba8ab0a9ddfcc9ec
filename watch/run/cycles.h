// Where all ranks of a job make the same collectives again and again, most of what they did is
// taken at once: the watcher's time does not grow with the number of calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "watch/judge/judge.h"
#include "watch/run/process.h"

namespace lockstep::watch::run {

// `drain` reads so many calls of a rank, for the judge, and says how many events that were. How
// many were taken in all.
std::uint64_t TakeCycles(
    const std::map<int, std::unique_ptr<Process>>& processes, judge::Judge& judge,
    const std::function<std::uint64_t(int rank, Process& process, std::uint64_t calls)>& drain);

}  // namespace lockstep::watch::run
