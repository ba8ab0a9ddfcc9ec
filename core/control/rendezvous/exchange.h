// How agents on several hosts learn where the coordinator listens: a process that owns the
// launcher's MPI identity gathers one short text of each rank, and gives all of them to its agent.
#pragma once

#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/control/channel.h"
#include "core/control/signals.h"

namespace lockstep::control::rendezvous {

// The child's part: reads one kGather, gathers over MPI, answers kGathered. With `keep_mpi` MPI
// stays initialized and it waits for kProceed; otherwise MPI is finalized before the return.
Status ServeExchange(Channel& channel, bool keep_mpi);

// The agent's part: gives `part` to the child and returns all ranks' parts.
Result<std::vector<std::string>> AskForExchange(Channel& channel, const std::string& part,
                                                bool mpi_on_threads, Signals& signals,
                                                Deadline deadline);

}  // namespace lockstep::control::rendezvous
