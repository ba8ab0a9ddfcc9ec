// Collectives of neighbours. All members call them in one order, and each needs only those that it
// gets something of: these are written down before the call.
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

constexpr int kMostNeighbors = 64;  // neighbours; who has more is not said to wait

struct Sources {
  int ranks[kMostNeighbors];  // of the communicator
  int count = 0;              // 0: also where they are not known
};

void AddOfCart(Handle comm, Sources& sources) {
  int dimensions = 0;
  Real<int(Handle, int*)>("PMPI_Cartdim_get")(comm, &dimensions);
  if (2 * dimensions > kMostNeighbors) return;
  const auto shift = Real<int(Handle, int, int, int*, int*)>("PMPI_Cart_shift");
  for (int each = 0; each < dimensions; ++each) {
    shift(comm, each, 1, sources.ranks + 2 * each, sources.ranks + 2 * each + 1);
  }
  sources.count = 2 * dimensions;
}

void AddOfDistGraph(Handle comm, Sources& sources) {
  int in = 0;
  int out = 0;
  int weighted = 0;
  Real<int(Handle, int*, int*, int*)>("PMPI_Dist_graph_neighbors_count")(comm, &in, &out,
                                                                         &weighted);
  if (in > kMostNeighbors || out > kMostNeighbors) return;
  int unused[3][kMostNeighbors];
  const auto neighbors =
      Real<int(Handle, int, int*, int*, int, int*, int*)>("PMPI_Dist_graph_neighbors");
  const int error = neighbors(comm, in, sources.ranks, unused[0], out, unused[1], unused[2]);
  if (error == kMpiSuccess) sources.count = in;
}

void AddOfGraph(Handle comm, Sources& sources) {
  int rank = 0;
  int count = 0;
  Real<int(Handle, int*)>("PMPI_Comm_rank")(comm, &rank);
  Real<int(Handle, int, int*)>("PMPI_Graph_neighbors_count")(comm, rank, &count);
  if (count > kMostNeighbors) return;
  const auto neighbors = Real<int(Handle, int, int, int*)>("PMPI_Graph_neighbors");
  if (neighbors(comm, rank, count, sources.ranks) == kMpiSuccess) sources.count = count;
}

Sources SourcesOf(Handle comm) {
  Sources sources;
  int topology = kMpiUndefined;
  if (CommOf(comm) <= events::kFreedComm) return sources;
  Real<int(Handle, int*)>("PMPI_Topo_test")(comm, &topology);
  if (topology == abi.cart) {
    AddOfCart(comm, sources);
  } else if (topology == kMpiDistGraph) {
    AddOfDistGraph(comm, sources);
  } else if (topology == abi.graph) {
    AddOfGraph(comm, sources);
  }
  return sources;
}

// `count_of` says how much comes from the n-th.
template <typename CountOf>
void AddSources(Watched& call, Handle comm, CountOf count_of) {
  call.Collective(comm);
  const Sources sources = SourcesOf(comm);
  for (int each = 0; each < sources.count; ++each) {
    const int rank = sources.ranks[each];
    if (rank != abi.proc_null && count_of(each) > 0) call.NeedsPart(rank);
  }
}

}  // namespace

// And its posted sister, which has a request. COUNT is how much comes from neighbour `each`.
#define LOCKSTEP_OF_NEIGHBORS(NAME, PARAMS, ARGUMENTS, COUNT)                                \
  LOCKSTEP_SIZED(Neighbor_##NAME, (LOCKSTEP_UNPACK PARAMS), (LOCKSTEP_UNPACK ARGUMENTS),     \
                 AddSources(call, comm, [&]([[maybe_unused]] int each) { return COUNT; }), ) \
  LOCKSTEP_SIZED(Ineighbor_##NAME, (LOCKSTEP_UNPACK PARAMS, Handles request),                \
                 (LOCKSTEP_UNPACK ARGUMENTS, request), call.Post();                          \
                 AddSources(call, comm, [&]([[maybe_unused]] int each) { return COUNT; }),   \
                 call.Posted(*request, result))

LOCKSTEP_OF_NEIGHBORS(allgather,
                      (const void* send, Count send_count, Handle send_type, void* receive,
                       Count count, Handle type, Handle comm),
                      (send, send_count, send_type, receive, count, type, comm), count)
LOCKSTEP_OF_NEIGHBORS(allgatherv,
                      (const void* send, Count send_count, Handle send_type, void* receive,
                       const Count* counts, const Place* places, Handle type, Handle comm),
                      (send, send_count, send_type, receive, counts, places, type, comm),
                      counts[each])
LOCKSTEP_OF_NEIGHBORS(alltoall,
                      (const void* send, Count send_count, Handle send_type, void* receive,
                       Count count, Handle type, Handle comm),
                      (send, send_count, send_type, receive, count, type, comm), count)
LOCKSTEP_OF_NEIGHBORS(
    alltoallv,
    (const void* send, const Count* send_counts, const Place* send_places, Handle send_type,
     void* receive, const Count* counts, const Place* places, Handle type, Handle comm),
    (send, send_counts, send_places, send_type, receive, counts, places, type, comm), counts[each])
LOCKSTEP_OF_NEIGHBORS(alltoallw,
                      (const void* send, const Count* send_counts, const Aint* send_places,
                       Handles send_types, void* receive, const Count* counts, const Aint* places,
                       Handles types, Handle comm),
                      (send, send_counts, send_places, send_types, receive, counts, places, types,
                       comm),
                      counts[each])

}  // namespace lockstep::watch::preload
