// NCCL's communicators: what all members call them, and what was called on them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "watch/events/event.h"

namespace lockstep::watch::preload {

// The library's function `symbol`; null, with one line on stderr, where there is none. `caller`: an
// address in the program or library that calls it.
void* FindNccl(const char* symbol, void* caller);

template <typename Function>
Function* RealNccl(const char* symbol, void* caller = nullptr) {
  return reinterpret_cast<Function*>(FindNccl(symbol, caller));
}

// The same in all members: of a unique id, or of a parent's name and what all members of a child
// know.
std::uint64_t NcclName(std::uint64_t before, const void* data, std::size_t bytes);
// kUnknownComm where nobody saw how it was made.
std::uint64_t NameOfNccl(void* comm);

// Numbers a call among the communicator's collectives, or among its splits, and names it.
void NumberCall(void* comm, bool split, events::Event* event);

// This process is member `rank` of `size` from now on.
void JoinedComm(std::uint64_t name, int rank, int size);
// The handle of a communicator that exists, or that is gone.
void RememberComm(void* comm, std::uint64_t name);
void ForgetComm(void* comm);

// NCCL will write a handle to `place`. `parent` is null for what is made of a unique id in this
// thread's group: its rank and size are known already.
void ExpectComm(void** place, void* parent, std::uint64_t name);
// Takes what is expected, once the library has said that it is done, and before the program knows:
// then the places are still there. Of one parent (null: of this thread's group); of all.
void CollectComms(void* parent);
void CollectAllComms();

}  // namespace lockstep::watch::preload
