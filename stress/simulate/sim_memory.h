// Whether the ranks of a simulation fit into this process. It is asked before anything starts: in
// the midst of a simulation an allocation that fails ends the process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.h"

namespace lockstep::stress::simulate {

// Bytes that this process may still take.
struct MemoryRoom {
  std::int64_t address_space = 0;  // under RLIMIT_AS
  std::int64_t memory = 0;         // of the machine and of its control groups
};
MemoryRoom RoomOfThisProcess();

// Events that a simulated rank's journal keeps: fewer of one among many.
std::size_t SimJournalEvents(int ranks);

// `fifos`: streams of a rank with a stack of their own. What a model needs is not in it.
Status CheckSimMemory(int ranks, int fifos, const MemoryRoom& room);

// What is said where the memory ends although the ranks fitted.
Status SimOutOfMemory();

}  // namespace lockstep::stress::simulate
