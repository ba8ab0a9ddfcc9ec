// Every call that is watched, once: its name and what it means to the judge.
#pragma once

#include <cstdint>

namespace lockstep::watch::events {

enum class Class : std::uint8_t {
  kLocal,         // waits for nobody
  kSend,          // returns when the message may be forgotten
  kReceive,       // returns with a message
  kProbe,         // returns when a message is there, and leaves it
  kExchange,      // a send and a receive in one call
  kPostSend,      // begins a send, leaves a request
  kPostReceive,   // begins a receive, leaves a request
  kPostExchange,  // begins both, in one request
  kPostLocal,     // leaves a request that needs no other rank
  kPrepare,       // leaves a persistent request that waits for its start
  kStart,         // begins persistent requests
  kWaitAll,       // returns when all its requests are over
  kWaitAny,       // returns when one of its requests is over
  kTest,          // never waits
  kCollective,    // all members of a communicator, in one order
  kPostCollective,
  kWindow,       // of some members of a window: epochs and locks
  kNotFollowed,  // what it begins is not known: the watcher's last line names it
  kFinalize,
};

// How much of a collective a member may leave before the others entered it.
enum class Sync : std::uint8_t {
  kNone,       // not a collective
  kAll,        // nobody leaves before all entered
  kRoot,       // the others wait for the root (broadcast, scatter)
  kAtRoot,     // the root waits for all (gather, reduce)
  kLower,      // waits for the ranks below (scan)
  kNeighbors,  // a rank waits for those of which it gets something
  kLoose,      // as the library likes
};

// X(name, class, sync)
#define LOCKSTEP_WATCH_CALLS(X)                        \
  X(None, kLocal, kNone)                               \
  X(Init, kLocal, kNone)                               \
  X(Init_thread, kLocal, kNone)                        \
  X(Finalize, kFinalize, kNone)                        \
  X(Abort, kLocal, kNone)                              \
  X(Send, kSend, kNone)                                \
  X(Ssend, kSend, kNone)                               \
  X(Bsend, kSend, kNone)                               \
  X(Rsend, kSend, kNone)                               \
  X(Recv, kReceive, kNone)                             \
  X(Probe, kProbe, kNone)                              \
  X(Iprobe, kTest, kNone)                              \
  X(Mprobe, kReceive, kNone)                           \
  X(Improbe, kTest, kNone)                             \
  X(Mrecv, kLocal, kNone)                              \
  X(Imrecv, kPostLocal, kNone)                         \
  X(Sendrecv, kExchange, kNone)                        \
  X(Sendrecv_replace, kExchange, kNone)                \
  X(Isend, kPostSend, kNone)                           \
  X(Issend, kPostSend, kNone)                          \
  X(Ibsend, kPostSend, kNone)                          \
  X(Irsend, kPostSend, kNone)                          \
  X(Irecv, kPostReceive, kNone)                        \
  X(Isendrecv, kPostExchange, kNone)                   \
  X(Isendrecv_replace, kPostExchange, kNone)           \
  X(Send_init, kPrepare, kNone)                        \
  X(Ssend_init, kPrepare, kNone)                       \
  X(Bsend_init, kPrepare, kNone)                       \
  X(Rsend_init, kPrepare, kNone)                       \
  X(Recv_init, kPrepare, kNone)                        \
  X(Start, kStart, kNone)                              \
  X(Startall, kStart, kNone)                           \
  X(Wait, kWaitAll, kNone)                             \
  X(Waitall, kWaitAll, kNone)                          \
  X(Waitany, kWaitAny, kNone)                          \
  X(Waitsome, kWaitAny, kNone)                         \
  X(Test, kTest, kNone)                                \
  X(Testall, kTest, kNone)                             \
  X(Testany, kTest, kNone)                             \
  X(Testsome, kTest, kNone)                            \
  X(Request_free, kLocal, kNone)                       \
  X(Cancel, kLocal, kNone)                             \
  X(Barrier, kCollective, kAll)                        \
  X(Bcast, kCollective, kRoot)                         \
  X(Reduce, kCollective, kAtRoot)                      \
  X(Allreduce, kCollective, kAll)                      \
  X(Gather, kCollective, kAtRoot)                      \
  X(Gatherv, kCollective, kAtRoot)                     \
  X(Scatter, kCollective, kRoot)                       \
  X(Scatterv, kCollective, kRoot)                      \
  X(Allgather, kCollective, kAll)                      \
  X(Allgatherv, kCollective, kAll)                     \
  X(Alltoall, kCollective, kAll)                       \
  X(Alltoallv, kCollective, kAll)                      \
  X(Alltoallw, kCollective, kAll)                      \
  X(Scan, kCollective, kLower)                         \
  X(Exscan, kCollective, kLower)                       \
  X(Reduce_scatter, kCollective, kAll)                 \
  X(Reduce_scatter_block, kCollective, kAll)           \
  X(Ibarrier, kPostCollective, kAll)                   \
  X(Ibcast, kPostCollective, kRoot)                    \
  X(Ireduce, kPostCollective, kAtRoot)                 \
  X(Iallreduce, kPostCollective, kAll)                 \
  X(Igather, kPostCollective, kAtRoot)                 \
  X(Igatherv, kPostCollective, kAtRoot)                \
  X(Iscatter, kPostCollective, kRoot)                  \
  X(Iscatterv, kPostCollective, kRoot)                 \
  X(Iallgather, kPostCollective, kAll)                 \
  X(Iallgatherv, kPostCollective, kAll)                \
  X(Ialltoall, kPostCollective, kAll)                  \
  X(Ialltoallv, kPostCollective, kAll)                 \
  X(Ialltoallw, kPostCollective, kAll)                 \
  X(Iscan, kPostCollective, kLower)                    \
  X(Iexscan, kPostCollective, kLower)                  \
  X(Ireduce_scatter, kPostCollective, kAll)            \
  X(Ireduce_scatter_block, kPostCollective, kAll)      \
  X(Neighbor_allgather, kCollective, kNeighbors)       \
  X(Neighbor_allgatherv, kCollective, kNeighbors)      \
  X(Neighbor_alltoall, kCollective, kNeighbors)        \
  X(Neighbor_alltoallv, kCollective, kNeighbors)       \
  X(Neighbor_alltoallw, kCollective, kNeighbors)       \
  X(Ineighbor_allgather, kPostCollective, kNeighbors)  \
  X(Ineighbor_allgatherv, kPostCollective, kNeighbors) \
  X(Ineighbor_alltoall, kPostCollective, kNeighbors)   \
  X(Ineighbor_alltoallv, kPostCollective, kNeighbors)  \
  X(Ineighbor_alltoallw, kPostCollective, kNeighbors)  \
  X(Barrier_init, kNotFollowed, kNone)                 \
  X(Bcast_init, kNotFollowed, kNone)                   \
  X(Reduce_init, kNotFollowed, kNone)                  \
  X(Allreduce_init, kNotFollowed, kNone)               \
  X(Gather_init, kNotFollowed, kNone)                  \
  X(Gatherv_init, kNotFollowed, kNone)                 \
  X(Scatter_init, kNotFollowed, kNone)                 \
  X(Scatterv_init, kNotFollowed, kNone)                \
  X(Allgather_init, kNotFollowed, kNone)               \
  X(Allgatherv_init, kNotFollowed, kNone)              \
  X(Alltoall_init, kNotFollowed, kNone)                \
  X(Alltoallv_init, kNotFollowed, kNone)               \
  X(Alltoallw_init, kNotFollowed, kNone)               \
  X(Scan_init, kNotFollowed, kNone)                    \
  X(Exscan_init, kNotFollowed, kNone)                  \
  X(Reduce_scatter_init, kNotFollowed, kNone)          \
  X(Reduce_scatter_block_init, kNotFollowed, kNone)    \
  X(Neighbor_allgather_init, kNotFollowed, kNone)      \
  X(Neighbor_allgatherv_init, kNotFollowed, kNone)     \
  X(Neighbor_alltoall_init, kNotFollowed, kNone)       \
  X(Neighbor_alltoallv_init, kNotFollowed, kNone)      \
  X(Neighbor_alltoallw_init, kNotFollowed, kNone)      \
  X(Psend_init, kNotFollowed, kNone)                   \
  X(Precv_init, kNotFollowed, kNone)                   \
  X(Comm_dup, kCollective, kAll)                       \
  X(Comm_dup_with_info, kCollective, kAll)             \
  X(Comm_split, kCollective, kAll)                     \
  X(Comm_split_type, kCollective, kAll)                \
  X(Comm_create, kCollective, kAll)                    \
  X(Comm_create_group, kCollective, kAll)              \
  X(Cart_create, kCollective, kAll)                    \
  X(Cart_sub, kCollective, kAll)                       \
  X(Cart_get, kLocal, kNone)                           \
  X(Graph_create, kCollective, kAll)                   \
  X(Dist_graph_create, kCollective, kAll)              \
  X(Dist_graph_create_adjacent, kCollective, kAll)     \
  X(Intercomm_create, kCollective, kAll)               \
  X(Intercomm_merge, kCollective, kAll)                \
  X(Comm_free, kLocal, kNone)                          \
  X(Comm_disconnect, kCollective, kLoose)              \
  X(Comm_idup, kPostCollective, kAll)                  \
  X(Comm_idup_with_info, kPostCollective, kAll)        \
  X(Comm_create_from_group, kNotFollowed, kNone)       \
  X(Intercomm_create_from_groups, kNotFollowed, kNone) \
  X(Comm_spawn, kLocal, kNone)                         \
  X(Comm_spawn_multiple, kLocal, kNone)                \
  X(Comm_accept, kLocal, kNone)                        \
  X(Comm_connect, kLocal, kNone)                       \
  X(Comm_join, kLocal, kNone)                          \
  X(Comm_group, kLocal, kNone)                         \
  X(Comm_remote_group, kLocal, kNone)                  \
  X(Group_incl, kLocal, kNone)                         \
  X(Group_excl, kLocal, kNone)                         \
  X(Group_union, kLocal, kNone)                        \
  X(Group_intersection, kLocal, kNone)                 \
  X(Group_difference, kLocal, kNone)                   \
  X(Group_range_incl, kLocal, kNone)                   \
  X(Group_range_excl, kLocal, kNone)                   \
  X(Group_free, kLocal, kNone)                         \
  X(Type_contiguous, kLocal, kNone)                    \
  X(Type_vector, kLocal, kNone)                        \
  X(Type_create_hvector, kLocal, kNone)                \
  X(Type_indexed, kLocal, kNone)                       \
  X(Type_create_hindexed, kLocal, kNone)               \
  X(Type_create_indexed_block, kLocal, kNone)          \
  X(Type_create_struct, kLocal, kNone)                 \
  X(Type_create_hindexed_block, kLocal, kNone)         \
  X(Type_create_darray, kLocal, kNone)                 \
  X(Type_create_subarray, kLocal, kNone)               \
  X(Type_create_resized, kLocal, kNone)                \
  X(Type_dup, kLocal, kNone)                           \
  X(Type_commit, kLocal, kNone)                        \
  X(Type_create_f90_integer, kLocal, kNone)            \
  X(Type_create_f90_real, kLocal, kNone)               \
  X(Type_create_f90_complex, kLocal, kNone)            \
  X(Type_match_size, kLocal, kNone)                    \
  X(Type_get_contents, kLocal, kNone)                  \
  X(Type_free, kLocal, kNone)                          \
  X(Op_create, kLocal, kNone)                          \
  X(Op_free, kLocal, kNone)                            \
  X(Win_create, kCollective, kAll)                     \
  X(Win_allocate, kCollective, kAll)                   \
  X(Win_allocate_shared, kCollective, kAll)            \
  X(Win_create_dynamic, kCollective, kAll)             \
  X(Win_fence, kCollective, kAll)                      \
  X(Win_free, kCollective, kAll)                       \
  X(Win_post, kWindow, kNone)                          \
  X(Win_start, kWindow, kNone)                         \
  X(Win_complete, kWindow, kNone)                      \
  X(Win_wait, kWindow, kNone)                          \
  X(Win_test, kWindow, kNone)                          \
  X(Win_lock, kWindow, kNone)                          \
  X(Win_lock_all, kWindow, kNone)                      \
  X(Win_unlock, kWindow, kNone)                        \
  X(Win_unlock_all, kWindow, kNone)                    \
  X(Win_flush, kWindow, kNone)                         \
  X(Win_flush_all, kWindow, kNone)                     \
  X(Win_flush_local, kWindow, kNone)                   \
  X(Win_flush_local_all, kWindow, kNone)               \
  X(Put, kLocal, kNone)                                \
  X(Get, kLocal, kNone)                                \
  X(Accumulate, kLocal, kNone)                         \
  X(File_open, kCollective, kAll)                      \
  X(File_delete, kLocal, kNone)                        \
  X(File_close, kCollective, kAll)                     \
  X(File_write_all, kCollective, kLoose)               \
  X(File_read_all, kCollective, kLoose)                \
  X(File_write_at_all, kCollective, kLoose)            \
  X(File_read_at_all, kCollective, kLoose)             \
  X(File_set_view, kCollective, kLoose)

// Process groups, as PyTorch's users know them. A rank may call them in any thread.
// X(name, what users call it, class, sync)
#define LOCKSTEP_WATCH_GROUP_CALLS(X)                     \
  X(GroupInit, "init_process_group", kLocal, kNone)       \
  X(GroupAllReduce, "all_reduce", kCollective, kAll)      \
  X(GroupBroadcast, "broadcast", kCollective, kRoot)      \
  X(GroupBarrier, "barrier", kCollective, kAll)           \
  X(GroupAllGather, "all_gather", kCollective, kAll)      \
  X(GroupAllGatherSizes, "all_gather", kCollective, kAll) \
  X(GroupGather, "gather", kCollective, kAtRoot)          \
  X(GroupReduce, "reduce", kCollective, kAtRoot)          \
  X(GroupScatter, "scatter", kCollective, kRoot)          \
  X(GroupAllToAll, "all_to_all", kCollective, kAll)       \
  X(GroupAllToAllSizes, "all_to_all", kCollective, kAll)  \
  X(GroupSend, "send", kPostSend, kNone)                  \
  X(GroupRecv, "recv", kPostReceive, kNone)               \
  X(GroupWait, "wait", kWaitAll, kNone)

// NCCL's calls: a device makes them later, in the order of their communicator. Who returns from one
// waited for nobody.
#define LOCKSTEP_WATCH_NCCL_CALLS(X)                           \
  X(NcclInit, "ncclCommInitRank", kLocal, kNone)               \
  X(NcclInitAll, "ncclCommInitAll", kLocal, kNone)             \
  X(NcclSplit, "ncclCommSplit", kCollective, kAll)             \
  X(NcclShrink, "ncclCommShrink", kLocal, kNone)               \
  X(NcclFinalize, "ncclCommFinalize", kLocal, kNone)           \
  X(NcclDestroy, "ncclCommDestroy", kLocal, kNone)             \
  X(NcclAbort, "ncclCommAbort", kLocal, kNone)                 \
  X(NcclRevoke, "ncclCommRevoke", kLocal, kNone)               \
  X(NcclGroupEnd, "ncclGroupEnd", kLocal, kNone)               \
  X(NcclAllReduce, "ncclAllReduce", kCollective, kAll)         \
  X(NcclBroadcast, "ncclBroadcast", kCollective, kRoot)        \
  X(NcclReduce, "ncclReduce", kCollective, kAtRoot)            \
  X(NcclAllGather, "ncclAllGather", kCollective, kAll)         \
  X(NcclReduceScatter, "ncclReduceScatter", kCollective, kAll) \
  X(NcclAlltoAll, "ncclAlltoAll", kCollective, kAll)           \
  X(NcclGather, "ncclGather", kCollective, kAtRoot)            \
  X(NcclScatter, "ncclScatter", kCollective, kRoot)            \
  X(NcclSend, "ncclSend", kLocal, kNone)                       \
  X(NcclRecv, "ncclRecv", kLocal, kNone)

enum class Call : std::uint16_t {
#define LOCKSTEP_WATCH_ENUMERATOR(name, ...) k##name,
  LOCKSTEP_WATCH_CALLS(LOCKSTEP_WATCH_ENUMERATOR)
      LOCKSTEP_WATCH_GROUP_CALLS(LOCKSTEP_WATCH_ENUMERATOR)
          LOCKSTEP_WATCH_NCCL_CALLS(LOCKSTEP_WATCH_ENUMERATOR)
#undef LOCKSTEP_WATCH_ENUMERATOR
              kCount,
};

struct CallFacts {
  const char* name;
  Class call_class;
  Sync sync;
};

inline constexpr CallFacts kCallFacts[] = {
#define LOCKSTEP_WATCH_FACTS(name, call_class, sync) {"MPI_" #name, Class::call_class, Sync::sync},
    LOCKSTEP_WATCH_CALLS(LOCKSTEP_WATCH_FACTS)
#undef LOCKSTEP_WATCH_FACTS
#define LOCKSTEP_WATCH_FACTS(name, text, call_class, sync) {text, Class::call_class, Sync::sync},
        LOCKSTEP_WATCH_GROUP_CALLS(LOCKSTEP_WATCH_FACTS)
            LOCKSTEP_WATCH_NCCL_CALLS(LOCKSTEP_WATCH_FACTS)
#undef LOCKSTEP_WATCH_FACTS
};

inline constexpr const CallFacts& FactsOf(Call call) {
  return kCallFacts[static_cast<std::uint16_t>(call)];
}

// Of a process group or of NCCL, not of MPI.
inline constexpr bool OfGroup(Call call) { return call >= Call::kGroupInit; }
inline constexpr bool OfNccl(Call call) { return call >= Call::kNcclInit; }

}  // namespace lockstep::watch::events
