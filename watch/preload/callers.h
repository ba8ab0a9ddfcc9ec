// Calls that some ranks make together before they have a communicator. The judge is told who they
// are, as of the members of one: also of those who never come, and so can't say it themselves.
#pragma once

#include <cstdint>

#include "watch/events/event.h"
#include "watch/preload/mpi_abi.h"

namespace lockstep::watch::preload {

// A name that is the same in all callers. events::kUnknownComm: one of them is in another world, or
// this process is not among them; then nothing is written down.
std::uint64_t CallersOfGroup(Handle comm, Handle group, int tag, events::Call call);
// Of the members on both sides.
std::uint64_t CallersOfInter(Handle inter, events::Call call);
// Of this process and the rank `other` of the communicator.
std::uint64_t CallersOfPair(Handle comm, int other, int tag, events::Call call);

}  // namespace lockstep::watch::preload
