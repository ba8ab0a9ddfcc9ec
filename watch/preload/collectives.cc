// Collectives, blocking and posted. `Data` is what every member must agree on. It is the send side
// where there is one, else the receive side.
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {
namespace {

int RankOf(Handle comm) {
  const auto comm_rank = FoundOnce([] { return Real<int(Handle, int*)>("PMPI_Comm_rank"); });
  int rank = -1;
  if (CommOf(comm) > events::kFreedComm) comm_rank(comm, &rank);
  return rank;
}

// A root that is no rank is MPI_ROOT or MPI_PROC_NULL between two groups, which says what of the
// other arguments counts, or a mistake, which is told.
bool IsRank(int root) { return root >= 0; }

// Between two groups a root's number is of the other one.
bool AtRoot(Handle comm, int root) { return RankOf(comm) == root && !IsInter(comm); }

// Nothing is said of the type where there is nothing of it.
void TypeOfSome(Watched& call, std::int64_t count, Handle type) {
  if (count != 0) call.TypeOnly(type);
}

// Nobody is said to wait for a member that may give nothing.
bool IsSome(std::int64_t count, Handle type) { return ElementsOf(type, count).count > 0; }

// Whether it is so of every other member.
bool OfAllOthers(Handle comm, auto is_some) {
  const auto size_of = FoundOnce([] { return Real<int(Handle, int*)>("PMPI_Comm_size"); });
  int size = 0;
  if (CommOf(comm) <= events::kFreedComm || IsInter(comm)) return false;
  if (size_of(comm, &size) != kMpiSuccess) return false;
  const int me = RankOf(comm);
  for (int each = 0; each < size; ++each) {
    if (each != me && !is_some(each)) return false;
  }
  return true;
}

// Of a sum to which all give, and of which each member gets its part.
bool GetsSome(const auto* counts, Handle type, Handle comm) {
  const int me = IsInter(comm) ? -1 : RankOf(comm);
  return me >= 0 && IsSome(counts[me], type);
}

// A block of its own size goes to `root`, or comes from it, for each member. `count` of `type`:
// this one's, where it is not the root.
void BlockOfItsOwn(Watched& call, std::int64_t count, Handle type, const auto* counts,
                   Handle root_type, int root, Handle comm) {
  call.Collective(comm, root);
  if (!IsRank(root)) return;
  const bool at_root = AtRoot(comm, root);
  at_root ? call.TypeOnly(root_type) : TypeOfSome(call, count, type);
  const auto is_some = [&](int each) { return IsSome(counts[each], root_type); };
  if (at_root ? OfAllOthers(comm, is_some) : IsSome(count, type)) call.AllGive();
}

// Who gets nothing of another may name any type.
void ExchangedSome(Watched& call, const auto* counts, Handle type, Handle comm) {
  call.Collective(comm);
  if (!OfAllOthers(comm, [&](int each) { return counts[each] != 0; })) return;
  if (counts[RankOf(comm)] != 0) call.TypeOnly(type);
  if (IsSome(1, type)) call.AllGive();
}

bool InPlace(const void* data) { return reinterpret_cast<std::uintptr_t>(data) == abi.in_place; }

// Of one block that goes to or comes from `root`.
void Gathered(Watched& call, const void* send, std::int64_t send_count, Handle send_type,
              std::int64_t count, Handle type, int root, Handle comm) {
  call.Collective(comm, root);
  if (!IsRank(root)) return;
  if (AtRoot(comm, root)) {
    call.Data(count, type);
    if (!InPlace(send)) call.Data2(send_count, send_type);
  } else {
    call.Data(send_count, send_type);
  }
}

void Scattered(Watched& call, std::int64_t send_count, Handle send_type, const void* receive,
               std::int64_t count, Handle type, int root, Handle comm) {
  call.Collective(comm, root);
  if (!IsRank(root)) return;
  if (AtRoot(comm, root)) {
    call.Data(send_count, send_type);
    if (!InPlace(receive)) call.Data2(count, type);
  } else {
    call.Data(count, type);
  }
}

void Everywhere(Watched& call, const void* send, std::int64_t send_count, Handle send_type,
                std::int64_t count, Handle type, Handle comm) {
  call.Collective(comm);
  call.Data(count, type);
  if (!InPlace(send)) call.Data2(send_count, send_type);
}

}  // namespace

// A collective and its posted sister: the same parameters, and a request.
#define LOCKSTEP_POSTED(DEFINE, INAME, PARAMS, ARGUMENTS, BEFORE)                                \
  DEFINE(INAME, (LOCKSTEP_UNPACK PARAMS, Handles request), (LOCKSTEP_UNPACK ARGUMENTS, request), \
         BEFORE;                                                                                 \
         call.Post(), call.Posted(*request, result))
#define LOCKSTEP_COLLECTIVE(NAME, INAME, PARAMS, ARGUMENTS, BEFORE) \
  LOCKSTEP_SIZED(NAME, PARAMS, ARGUMENTS, BEFORE, )                 \
  LOCKSTEP_POSTED(LOCKSTEP_SIZED, INAME, PARAMS, ARGUMENTS, BEFORE)
#define LOCKSTEP_SIMPLE(NAME, INAME, PARAMS, ARGUMENTS, WORDS, BEFORE) \
  namespace of_int {                                                   \
  LOCKSTEP_COUNTED(NAME, PARAMS, ARGUMENTS, WORDS, BEFORE)             \
  }                                                                    \
  namespace of_count {                                                 \
  LOCKSTEP_WATCHED_NEW(NAME, NAME##_c, PARAMS, ARGUMENTS, BEFORE, )    \
  }                                                                    \
  LOCKSTEP_POSTED(LOCKSTEP_SIZED, INAME, PARAMS, ARGUMENTS, BEFORE)

LOCKSTEP_COUNTED(Barrier, (Handle comm), (comm), (comm), call.Collective(comm))
LOCKSTEP_POSTED(LOCKSTEP_WATCHED, Ibarrier, (Handle comm), (comm), call.Collective(comm))
LOCKSTEP_SIMPLE(Bcast, Ibcast, (void* data, Count count, Handle type, int root, Handle comm),
                (data, count, type, root, comm), (count, type, root, comm),
                call.Collective(comm, root);
                if (IsRank(root)) call.Data(count, type))
LOCKSTEP_SIMPLE(Reduce, Ireduce,
                (const void* send, void* receive, Count count, Handle type, Handle op, int root,
                 Handle comm),
                (send, receive, count, type, op, root, comm), (count, type, op, root, comm),
                call.Collective(comm, root, OperatorOf(op));
                if (IsRank(root)) call.Data(count, type))

#define LOCKSTEP_REDUCTION(NAME, INAME)                                                    \
  LOCKSTEP_SIMPLE(                                                                         \
      NAME, INAME,                                                                         \
      (const void* send, void* receive, Count count, Handle type, Handle op, Handle comm), \
      (send, receive, count, type, op, comm), (count, type, op, comm),                     \
      call.Collective(comm, events::kNoRoot, OperatorOf(op));                              \
      call.Data(count, type))
LOCKSTEP_REDUCTION(Allreduce, Iallreduce)
LOCKSTEP_REDUCTION(Scan, Iscan)
LOCKSTEP_REDUCTION(Exscan, Iexscan)
LOCKSTEP_REDUCTION(Reduce_scatter_block, Ireduce_scatter_block)

LOCKSTEP_COLLECTIVE(Reduce_scatter, Ireduce_scatter,
                    (const void* send, void* receive, const Count* counts, Handle type, Handle op,
                     Handle comm),
                    (send, receive, counts, type, op, comm),
                    call.Collective(comm, events::kNoRoot, OperatorOf(op));
                    call.TypeOnly(type); if (GetsSome(counts, type, comm)) call.AllGive())
LOCKSTEP_COLLECTIVE(Gather, Igather,
                    (const void* send, Count send_count, Handle send_type, void* receive,
                     Count count, Handle type, int root, Handle comm),
                    (send, send_count, send_type, receive, count, type, root, comm),
                    Gathered(call, send, send_count, send_type, count, type, root, comm))
LOCKSTEP_COLLECTIVE(Gatherv, Igatherv,
                    (const void* send, Count send_count, Handle send_type, void* receive,
                     const Count* counts, const Place* places, Handle type, int root, Handle comm),
                    (send, send_count, send_type, receive, counts, places, type, root, comm),
                    BlockOfItsOwn(call, send_count, send_type, counts, type, root, comm))
LOCKSTEP_COLLECTIVE(Scatter, Iscatter,
                    (const void* send, Count send_count, Handle send_type, void* receive,
                     Count count, Handle type, int root, Handle comm),
                    (send, send_count, send_type, receive, count, type, root, comm),
                    Scattered(call, send_count, send_type, receive, count, type, root, comm))
LOCKSTEP_COLLECTIVE(Scatterv, Iscatterv,
                    (const void* send, const Count* counts, const Place* places, Handle send_type,
                     void* receive, Count count, Handle type, int root, Handle comm),
                    (send, counts, places, send_type, receive, count, type, root, comm),
                    BlockOfItsOwn(call, count, type, counts, send_type, root, comm))

#define LOCKSTEP_EXCHANGE(NAME, INAME)                                                      \
  LOCKSTEP_COLLECTIVE(NAME, INAME,                                                          \
                      (const void* send, Count send_count, Handle send_type, void* receive, \
                       Count count, Handle type, Handle comm),                              \
                      (send, send_count, send_type, receive, count, type, comm),            \
                      Everywhere(call, send, send_count, send_type, count, type, comm))
LOCKSTEP_EXCHANGE(Allgather, Iallgather)
LOCKSTEP_EXCHANGE(Alltoall, Ialltoall)

LOCKSTEP_COLLECTIVE(Allgatherv, Iallgatherv,
                    (const void* send, Count send_count, Handle send_type, void* receive,
                     const Count* counts, const Place* places, Handle type, Handle comm),
                    (send, send_count, send_type, receive, counts, places, type, comm),
                    call.Collective(comm);
                    call.TypeOnly(type);
                    if (OfAllOthers(comm, [&](int each) { return IsSome(counts[each], type); }))
                        call.AllGive())
LOCKSTEP_COLLECTIVE(Alltoallv, Ialltoallv,
                    (const void* send, const Count* send_counts, const Place* send_places,
                     Handle send_type, void* receive, const Count* counts, const Place* places,
                     Handle type, Handle comm),
                    (send, send_counts, send_places, send_type, receive, counts, places, type,
                     comm),
                    ExchangedSome(call, counts, type, comm))
LOCKSTEP_COLLECTIVE(
    Alltoallw, Ialltoallw,
    (const void* send, const Count* send_counts, const Place* send_places, Handles send_types,
     void* receive, const Count* counts, const Place* places, Handles types, Handle comm),
    (send, send_counts, send_places, send_types, receive, counts, places, types, comm),
    call.Collective(comm);
    if (OfAllOthers(comm, [&](int each) { return IsSome(counts[each], types[each]); }))
        call.AllGive())

}  // namespace lockstep::watch::preload
