// What the launch tests do with MPI in a worker.
#pragma once

#include <string>

#include "core/journal/journal.h"

namespace lockstep::control::rendezvous {

// "rank 1 of 2, was 0" (was: whether MPI was initialized before).
std::string ProbeMpiInit();
// Blocking sums; for ever when `iterations` is 0. Returns "sums are right" or what was wrong.
std::string ProbeMpiLoop(long iterations, journal::JournalWriter& journal);
std::string ProbeMpiFinalize();

}  // namespace lockstep::control::rendezvous
