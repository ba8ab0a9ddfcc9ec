// From a vendor's handles and constants to what events hold, and back to nothing: the judge sees
// numbers that mean the same in every rank.
#pragma once

#include <cstdint>

#include "watch/events/event.h"
#include "watch/preload/handles.h"
#include "watch/preload/mpi_abi.h"

namespace lockstep::watch::preload {

// Once, when MPI_Init is over: the world, the predefined datatypes and operators.
void LearnPredefined();

std::uint64_t CommOf(Handle comm);
// It is between two groups. `comm` is alive.
bool IsInter(Handle comm);
std::uint64_t WindowOf(Handle window);
std::uint64_t FileOf(FileHandle file);

struct Elements {
  std::uint32_t type;
  std::int64_t count;
};
Elements ElementsOf(Handle type, std::int64_t count);
// Of a type, or of `size` types that are put together: mixed where they are not of one class.
std::uint32_t ElementTypeOf(Handle type);
std::uint32_t ElementTypeOf(Handles types, int size);

std::int32_t OperatorOf(Handle op);
std::int32_t SourceOf(int source);
std::int32_t TagOf(int tag);

// An object begins or ends: kMade and kFreed, for what is left at the end.
void MadeComm(Handle parent, Handle comm, std::uint64_t salt, events::Call call,
              std::uint64_t site);
// One that is not followed: its handle may be that of one that was freed.
void MadeUnfollowedComm();
void MadeWindow(Handle parent, Handle window, events::Call call, std::uint64_t site);
void MadeFile(Handle parent, FileHandle file, events::Call call, std::uint64_t site);
void MadeType(Handle type, std::uint32_t element, events::Call call, std::uint64_t site);
void CommittedType(Handle type);
// The library gave it to the program, which may use it: it is not one that was freed before.
void GotType(Handle type);
// … as part of another one. MPICH gives the handle that the program may have already, once more.
// How often it must be freed is not counted: nothing is said of it from now on.
void GotPart(Handle type, std::uint64_t site);
void MadeOp(Handle op, events::Call call, std::uint64_t site);
void MadeGroup(Handle group, events::Call call, std::uint64_t site);
// What a handle stands for is asked before the library frees it, and noted as freed when it has: it
// may refuse. By then another thread may have got the same handle for another object, which stays.
Known Held(events::Object object, std::uint64_t handle);
void Freed(events::Object object, const Known& held, std::uint64_t site);

// Requests: a number that no other request of this process has.
std::uint32_t NewRequest();
struct RequestFacts {
  std::uint32_t number = 0;  // 0: none, or not known
  std::uint8_t flags = 0;
  std::uint32_t send = 0;  // of a send and a receive in one: the send's number
};
void RememberRequest(Handle request, const RequestFacts& facts);
RequestFacts RequestOf(Handle request);
// Of several that have this handle, that of this number, or else another one.
RequestFacts ForgetRequest(Handle request, std::uint32_t number);

}  // namespace lockstep::watch::preload
