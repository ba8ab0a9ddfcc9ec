// NCCL's binary interface, as far as it is watched. Handles and streams are pointers, enumerators
// are int. nccl_calls_test holds this against the installed header; the library needs none.
#pragma once

#include <cstddef>

namespace lockstep::watch::preload {

struct NcclUniqueId {
  char bytes[128];
};

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInternalError = 3;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclFirstOwnOp = 5;  // operators from here on are the program's own
inline constexpr int kNcclShrinkAbort = 1;

// Bytes of an element, by ncclDataType_t; 0: a type that is not known.
inline constexpr int NcclBytesOf(int type) {
  constexpr int kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < static_cast<int>(sizeof kBytes / sizeof *kBytes) ? kBytes[type] : 0;
}

// X(name, parameters, arguments, call, root, operator): what all members call, in one order.
// kMoves: bytes are moved, so that only their number counts.
#define LOCKSTEP_NCCL_COLLECTIVES(X)                                                               \
  X(AllReduce,                                                                                     \
    (const void* send, void* recv, std::size_t count, int type, int op, void* comm, void* stream), \
    (send, recv, count, type, op, comm, stream), NcclAllReduce, events::kNoRoot, op)               \
  X(Broadcast,                                                                                     \
    (const void* send, void* recv, std::size_t count, int type, int root, void* comm,              \
     void* stream),                                                                                \
    (send, recv, count, type, root, comm, stream), NcclBroadcast, root, kMoves)                    \
  X(Bcast, (void* data, std::size_t count, int type, int root, void* comm, void* stream),          \
    (data, count, type, root, comm, stream), NcclBroadcast, root, kMoves)                          \
  X(Reduce,                                                                                        \
    (const void* send, void* recv, std::size_t count, int type, int op, int root, void* comm,      \
     void* stream),                                                                                \
    (send, recv, count, type, op, root, comm, stream), NcclReduce, root, op)                       \
  X(AllGather,                                                                                     \
    (const void* send, void* recv, std::size_t count, int type, void* comm, void* stream),         \
    (send, recv, count, type, comm, stream), NcclAllGather, events::kNoRoot, kMoves)               \
  X(ReduceScatter,                                                                                 \
    (const void* send, void* recv, std::size_t count, int type, int op, void* comm, void* stream), \
    (send, recv, count, type, op, comm, stream), NcclReduceScatter, events::kNoRoot, op)           \
  X(AlltoAll,                                                                                      \
    (const void* send, void* recv, std::size_t count, int type, void* comm, void* stream),         \
    (send, recv, count, type, comm, stream), NcclAlltoAll, events::kNoRoot, kMoves)                \
  X(Gather,                                                                                        \
    (const void* send, void* recv, std::size_t count, int type, int root, void* comm,              \
     void* stream),                                                                                \
    (send, recv, count, type, root, comm, stream), NcclGather, root, kMoves)                       \
  X(Scatter,                                                                                       \
    (const void* send, void* recv, std::size_t count, int type, int root, void* comm,              \
     void* stream),                                                                                \
    (send, recv, count, type, root, comm, stream), NcclScatter, root, kMoves)

// X(name, parameters, arguments, call): from one member to another.
#define LOCKSTEP_NCCL_MESSAGES(X)                                                              \
  X(Send, (const void* data, std::size_t count, int type, int peer, void* comm, void* stream), \
    (data, count, type, peer, comm, stream), NcclSend)                                         \
  X(Recv, (void* data, std::size_t count, int type, int peer, void* comm, void* stream),       \
    (data, count, type, peer, comm, stream), NcclRecv)

// X(name, parameters): those that nccl.cc writes by hand.
#define LOCKSTEP_NCCL_OTHERS(X)                                                            \
  X(CommInitRank, (void** made, int size, NcclUniqueId id, int rank))                      \
  X(CommInitRankConfig, (void** made, int size, NcclUniqueId id, int rank, void* config))  \
  X(CommInitRankScalable,                                                                  \
    (void** made, int size, int rank, int id_count, NcclUniqueId* ids, void* config))      \
  X(CommInitAll, (void** made, int count, const int* devices))                             \
  X(CommSplit, (void* comm, int color, int key, void** made, void* config))                \
  X(CommShrink,                                                                            \
    (void* comm, int* excluded, int excluded_count, void** made, void* config, int flags)) \
  X(CommFinalize, (void* comm))                                                            \
  X(CommDestroy, (void* comm))                                                             \
  X(CommAbort, (void* comm))                                                               \
  X(CommRevoke, (void* comm, int flags))                                                   \
  X(CommGetAsyncError, (void* comm, int* error))                                           \
  X(GroupStart, ())                                                                        \
  X(GroupEnd, ())

}  // namespace lockstep::watch::preload
