// What the launch tests do with MPI in a worker.
#ifndef LOCKSTEP_CORE_CONTROL_RENDEZVOUS_TESTING_MPI_PROBE_H_
#define LOCKSTEP_CORE_CONTROL_RENDEZVOUS_TESTING_MPI_PROBE_H_

#include <string>

#include "core/journal/journal.h"

namespace lockstep::control::rendezvous {

// "rank 1 of 2, was 0" (was: whether MPI was initialized before).
std::string ProbeMpiInit();
// Blocking sums; for ever when `iterations` is 0. Returns "sums are right" or what was wrong.
std::string ProbeMpiLoop(long iterations, journal::JournalWriter& journal);
std::string ProbeMpiFinalize();

}  // namespace lockstep::control::rendezvous

#endif  // LOCKSTEP_CORE_CONTROL_RENDEZVOUS_TESTING_MPI_PROBE_H_
