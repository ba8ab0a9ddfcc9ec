// Calls that are named and not followed: what they begin, nobody waits for as far as the judge
// knows. All parameters are words, so one list of them does for all.
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {

using Word = std::uintptr_t;

// As many as the longest has, MPI_Alltoallw_init. A shorter one does not look at what is too much.
#define LOCKSTEP_NOT_FOLLOWED_AS(CALL, NAME)                                                    \
  LOCKSTEP_WATCHED_NEW(                                                                         \
      CALL, NAME,                                                                               \
      (Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k), \
      (a, b, c, d, e, f, g, h, i, j, k), , )
#define LOCKSTEP_NOT_FOLLOWED(NAME)    \
  LOCKSTEP_NOT_FOLLOWED_AS(NAME, NAME) \
  LOCKSTEP_NOT_FOLLOWED_AS(NAME, NAME##_c)

LOCKSTEP_NOT_FOLLOWED_AS(Barrier_init, Barrier_init)
LOCKSTEP_NOT_FOLLOWED(Bcast_init)
LOCKSTEP_NOT_FOLLOWED(Reduce_init)
LOCKSTEP_NOT_FOLLOWED(Allreduce_init)
LOCKSTEP_NOT_FOLLOWED(Gather_init)
LOCKSTEP_NOT_FOLLOWED(Gatherv_init)
LOCKSTEP_NOT_FOLLOWED(Scatter_init)
LOCKSTEP_NOT_FOLLOWED(Scatterv_init)
LOCKSTEP_NOT_FOLLOWED(Allgather_init)
LOCKSTEP_NOT_FOLLOWED(Allgatherv_init)
LOCKSTEP_NOT_FOLLOWED(Alltoall_init)
LOCKSTEP_NOT_FOLLOWED(Alltoallv_init)
LOCKSTEP_NOT_FOLLOWED(Alltoallw_init)
LOCKSTEP_NOT_FOLLOWED(Scan_init)
LOCKSTEP_NOT_FOLLOWED(Exscan_init)
LOCKSTEP_NOT_FOLLOWED(Reduce_scatter_init)
LOCKSTEP_NOT_FOLLOWED(Reduce_scatter_block_init)
LOCKSTEP_NOT_FOLLOWED(Neighbor_allgather_init)
LOCKSTEP_NOT_FOLLOWED(Neighbor_allgatherv_init)
LOCKSTEP_NOT_FOLLOWED(Neighbor_alltoall_init)
LOCKSTEP_NOT_FOLLOWED(Neighbor_alltoallv_init)
LOCKSTEP_NOT_FOLLOWED(Neighbor_alltoallw_init)
LOCKSTEP_NOT_FOLLOWED_AS(Psend_init, Psend_init)
LOCKSTEP_NOT_FOLLOWED_AS(Precv_init, Precv_init)

}  // namespace lockstep::watch::preload
