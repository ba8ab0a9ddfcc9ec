// From a vendor's handles and constants to what events hold, and back to nothing: the judge sees
// numbers that mean the same in every rank.
#ifndef LOCKSTEP_WATCH_PRELOAD_MPI_NAMES_H_
#define LOCKSTEP_WATCH_PRELOAD_MPI_NAMES_H_

// A process without MPI (mpirun, a shell) must start with this library in it: what a vendor's
// library holds is asked for weakly.
#define OMPI_DECLSPEC __attribute__((weak, visibility("default")))
#include <mpi.h>

#include <cstdint>

#include "watch/events/event.h"

namespace lockstep::watch::preload {

// Once, when MPI_Init is over: the world, the predefined datatypes and operators.
void LearnPredefined();

std::uint64_t CommOf(MPI_Comm comm);
std::uint64_t WindowOf(MPI_Win window);
std::uint64_t FileOf(MPI_File file);

struct Elements {
  std::uint32_t type;
  std::int64_t count;
};
Elements ElementsOf(MPI_Datatype type, std::int64_t count);
// Of `size` types that are put together; mixed where they are not of one class.
std::uint32_t ElementTypeOf(const MPI_Datatype* types, int size);

std::int32_t OperatorOf(MPI_Op op);
std::int32_t SourceOf(int source);
std::int32_t TagOf(int tag);

// An object begins or ends: kMade and kFreed, for what is left at the end.
void MadeComm(MPI_Comm parent, MPI_Comm comm, std::uint64_t salt, events::Call call,
              std::uint64_t site);
void MadeWindow(MPI_Comm parent, MPI_Win window, events::Call call, std::uint64_t site);
void MadeFile(MPI_Comm parent, MPI_File file, events::Call call, std::uint64_t site);
void MadeType(MPI_Datatype type, std::uint32_t element, events::Call call, std::uint64_t site);
void CommittedType(MPI_Datatype type);
void MadeOp(MPI_Op op, events::Call call, std::uint64_t site);
void MadeGroup(MPI_Group group, events::Call call, std::uint64_t site);
void FreedComm(MPI_Comm comm, std::uint64_t site);
void FreedWindow(MPI_Win window, std::uint64_t site);
void FreedFile(MPI_File file, std::uint64_t site);
void FreedType(MPI_Datatype type, std::uint64_t site);
void FreedOp(MPI_Op op, std::uint64_t site);
void FreedGroup(MPI_Group group, std::uint64_t site);

// Requests: a number that no other request of this process has.
std::uint32_t NewRequest();
void RememberRequest(MPI_Request request, std::uint32_t number, std::uint8_t flags);
struct RequestFacts {
  std::uint32_t number = 0;  // 0: none, or not known
  std::uint8_t flags = 0;
};
RequestFacts RequestOf(MPI_Request request);
void ForgetRequest(MPI_Request request);

}  // namespace lockstep::watch::preload

#endif  // LOCKSTEP_WATCH_PRELOAD_MPI_NAMES_H_
