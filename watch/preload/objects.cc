// Communicators, groups, datatypes and operators: what makes them, and what frees them.
#include "watch/preload/callers.h"
#include "watch/preload/watched.h"

namespace lockstep::watch::preload {

#define LOCKSTEP_MAKES_COMM(NAME, PARAMS, ARGUMENTS, PARENT)         \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, call.Collective(PARENT), \
                   if (result == kMpiSuccess)                        \
                       MadeComm(PARENT, *made, 0, events::Call::k##NAME, call.site()))

LOCKSTEP_MAKES_COMM(Comm_dup, (Handle comm, Handles made), (comm, made), comm)
LOCKSTEP_MAKES_COMM(Comm_dup_with_info, (Handle comm, Handle info, Handles made),
                    (comm, info, made), comm)
LOCKSTEP_WATCHED(Comm_split, (Handle comm, int color, int key, Handles made),
                 (comm, color, key, made), call.Collective(comm);
                 if (color < 0 && color != kMpiUndefined) call.BadArgument(),
                 if (result == kMpiSuccess)
                     MadeComm(comm, *made, 0, events::Call::kComm_split, call.site()))
LOCKSTEP_MAKES_COMM(Comm_split_type, (Handle comm, int type, int key, Handle info, Handles made),
                    (comm, type, key, info, made), comm)
LOCKSTEP_MAKES_COMM(Comm_create, (Handle comm, Handle group, Handles made), (comm, group, made),
                    comm)
LOCKSTEP_WATCHED(Comm_create_group, (Handle comm, Handle group, int tag, Handles made),
                 (comm, group, tag, made),
                 call.OnComm(CallersOfGroup(comm, group, tag, events::Call::kComm_create_group)),
                 if (result == kMpiSuccess)
                     MadeComm(comm, *made, static_cast<std::uint64_t>(tag) + 1,
                              events::Call::kComm_create_group, call.site()))
LOCKSTEP_WATCHED(
    Cart_create,
    (Handle comm, int dimensions, const int* sizes, const int* periods, int reorder, Handles made),
    (comm, dimensions, sizes, periods, reorder, made), call.Collective(comm);
    for (int each = 0; each < dimensions; ++each) {
      if (sizes[each] <= 0) call.BadArgument();
    },
    if (result == kMpiSuccess) MadeComm(comm, *made, 0, events::Call::kCart_create, call.site()))
LOCKSTEP_MAKES_COMM(Cart_sub, (Handle comm, const int* remain, Handles made), (comm, remain, made),
                    comm)
LOCKSTEP_MAKES_COMM(Graph_create,
                    (Handle comm, int nodes, const int* index, const int* edges, int reorder,
                     Handles made),
                    (comm, nodes, index, edges, reorder, made), comm)
LOCKSTEP_MAKES_COMM(Dist_graph_create,
                    (Handle comm, int count, const int* nodes, const int* degrees,
                     const int* targets, const int* weights, Handle info, int reorder,
                     Handles made),
                    (comm, count, nodes, degrees, targets, weights, info, reorder, made), comm)
LOCKSTEP_MAKES_COMM(
    Dist_graph_create_adjacent,
    (Handle comm, int in, const int* sources, const int* source_weights, int out,
     const int* targets, const int* target_weights, Handle info, int reorder, Handles made),
    (comm, in, sources, source_weights, out, targets, target_weights, info, reorder, made), comm)
LOCKSTEP_WATCHED(Intercomm_create,
                 (Handle comm, int leader, Handle peer_comm, int peer, int tag, Handles made),
                 (comm, leader, peer_comm, peer, tag, made),
                 call.Led(comm, leader, peer_comm, peer, tag),
                 if (result == kMpiSuccess)
                     MadeComm(comm, *made, static_cast<std::uint64_t>(tag) + 1,
                              events::Call::kIntercomm_create, call.site()))
LOCKSTEP_WATCHED(Intercomm_merge, (Handle comm, int high, Handles made), (comm, high, made),
                 call.OnComm(CallersOfInter(comm, events::Call::kIntercomm_merge)),
                 if (result == kMpiSuccess) MadeComm(abi.comm_world, *made, 1,
                                                     events::Call::kIntercomm_merge, call.site()))

// Made later, or with processes of other worlds: what is called on them is not followed.
#define LOCKSTEP_MAKES_UNFOLLOWED(NAME, PARAMS, ARGUMENTS) \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, MadeUnfollowedComm(), )
LOCKSTEP_WATCHED(Comm_idup, (Handle comm, Handles made, Handles request), (comm, made, request),
                 call.Collective(comm);
                 call.Post(); MadeUnfollowedComm(), call.Posted(*request, result))
LOCKSTEP_MAKES_UNFOLLOWED(Comm_spawn,
                          (const char* command, char** words, int most, Handle info, int root,
                           Handle comm, Handles made, int* errors),
                          (command, words, most, info, root, comm, made, errors))
LOCKSTEP_MAKES_UNFOLLOWED(Comm_spawn_multiple,
                          (int count, char** commands, char*** words, const int* most,
                           Handles infos, int root, Handle comm, Handles made, int* errors),
                          (count, commands, words, most, infos, root, comm, made, errors))
LOCKSTEP_MAKES_UNFOLLOWED(Comm_accept,
                          (const char* port, Handle info, int root, Handle comm, Handles made),
                          (port, info, root, comm, made))
LOCKSTEP_MAKES_UNFOLLOWED(Comm_connect,
                          (const char* port, Handle info, int root, Handle comm, Handles made),
                          (port, info, root, comm, made))
LOCKSTEP_MAKES_UNFOLLOWED(Comm_join, (int socket, Handles made), (socket, made))
LOCKSTEP_WATCHED_NEW(Comm_idup_with_info, Comm_idup_with_info,
                     (Handle comm, Handle info, Handles made, Handles request),
                     (comm, info, made, request), call.Collective(comm);
                     call.Post(); MadeUnfollowedComm(), call.Posted(*request, result))
LOCKSTEP_WATCHED_NEW(Comm_create_from_group, Comm_create_from_group,
                     (Handle group, const char* name, Handle info, Handle errors, Handles made),
                     (group, name, info, errors, made), MadeUnfollowedComm(), )
LOCKSTEP_WATCHED_NEW(Intercomm_create_from_groups, Intercomm_create_from_groups,
                     (Handle mine, int leader, Handle theirs, int their_leader, const char* name,
                      Handle info, Handle errors, Handles made),
                     (mine, leader, theirs, their_leader, name, info, errors, made),
                     MadeUnfollowedComm(), )

// A communicator that has no coordinates is none that this may be asked of.
LOCKSTEP_WATCHED(
    Cart_get, (Handle comm, int most, int* sizes, int* periods, int* coordinates),
    (comm, most, sizes, periods, coordinates), call.Collective(comm);
    int topology = abi.cart; if (CommOf(comm) > events::kFreedComm) {
      Real<int(Handle, int*)>("PMPI_Topo_test")(comm, &topology);
    } if (topology != abi.cart) call.BadArgument(), )

// A callback frees inside another call, and that is not written down. What it freed is.
static int FreeInCallback(int (*real)(Handles), events::Object object, Handles handle, void* site) {
  const Known held = Held(object, (*handle).Bits());
  const int result = real(handle);
  if (result == kMpiSuccess) Freed(object, held, reinterpret_cast<std::uint64_t>(site));
  return result;
}

#define LOCKSTEP_FREES(NAME, OBJECT, BEFORE)                                                   \
  extern "C" LOCKSTEP_WATCH_VISIBLE int MPI_##NAME(Handles handle) {                           \
    void* const site = __builtin_return_address(0);                                            \
    const auto real = FoundOnce([] { return Real<int(Handles)>("PMPI_" #NAME); });             \
    if (!real) return kMpiErrOther;                                                            \
    if (!IsOfProgram(site)) return real(handle);                                               \
    if (!WatchingMpi(site)) return FreeInCallback(real, events::Object::OBJECT, handle, site); \
    Watched call(events::Call::k##NAME, site);                                                 \
    const Known held = Held(events::Object::OBJECT, (*handle).Bits());                         \
    BEFORE;                                                                                    \
    call.Enter();                                                                              \
    const int result = real(handle);                                                           \
    if (result == kMpiSuccess) Freed(events::Object::OBJECT, held, call.site());               \
    call.Leave(result);                                                                        \
    return result;                                                                             \
  }                                                                                            \
  extern "C" LOCKSTEP_WATCH_VISIBLE int PMPI_##NAME(Handles) __attribute__((alias("MPI_" #NAME)));
LOCKSTEP_FREES(Comm_free, kCommunicator, call.Collective(*handle))
LOCKSTEP_FREES(Comm_disconnect, kCommunicator, call.Collective(*handle))
LOCKSTEP_FREES(Group_free, kGroup, )
LOCKSTEP_FREES(Type_free, kDatatype, )
LOCKSTEP_FREES(Op_free, kOperator, )

#define LOCKSTEP_MAKES_GROUP(NAME, PARAMS, ARGUMENTS) \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, ,         \
                   if (result == kMpiSuccess)         \
                       MadeGroup(*made, events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_GROUP(Comm_group, (Handle comm, Handles made), (comm, made))
LOCKSTEP_MAKES_GROUP(Comm_remote_group, (Handle comm, Handles made), (comm, made))
LOCKSTEP_MAKES_GROUP(Group_incl, (Handle group, int count, const int* ranks, Handles made),
                     (group, count, ranks, made))
LOCKSTEP_MAKES_GROUP(Group_excl, (Handle group, int count, const int* ranks, Handles made),
                     (group, count, ranks, made))
LOCKSTEP_MAKES_GROUP(Group_union, (Handle a, Handle b, Handles made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_intersection, (Handle a, Handle b, Handles made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_difference, (Handle a, Handle b, Handles made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_range_incl, (Handle group, int count, int ranges[][3], Handles made),
                     (group, count, ranges, made))
LOCKSTEP_MAKES_GROUP(Group_range_excl, (Handle group, int count, int ranges[][3], Handles made),
                     (group, count, ranges, made))

#define LOCKSTEP_MAKES_TYPE(NAME, PARAMS, ARGUMENTS, ...)                               \
  LOCKSTEP_SIZED(NAME, PARAMS, ARGUMENTS, ,                                             \
                 if (result == kMpiSuccess) MadeType(*made, ElementTypeOf(__VA_ARGS__), \
                                                     events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_TYPE(Type_contiguous, (Count count, Handle old, Handles made), (count, old, made),
                    old)
LOCKSTEP_MAKES_TYPE(Type_vector,
                    (Count count, Count length, Count stride, Handle old, Handles made),
                    (count, length, stride, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_hvector,
                    (Count count, Count length, Aint stride, Handle old, Handles made),
                    (count, length, stride, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_indexed,
                    (Count count, const Count* lengths, const Count* places, Handle old,
                     Handles made),
                    (count, lengths, places, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_hindexed,
                    (Count count, const Count* lengths, const Aint* places, Handle old,
                     Handles made),
                    (count, lengths, places, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_indexed_block,
                    (Count count, Count length, const Count* places, Handle old, Handles made),
                    (count, length, places, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_struct,
                    (Count count, const Count* lengths, const Aint* places, Handles old,
                     Handles made),
                    (count, lengths, places, old, made), old, count)
LOCKSTEP_MAKES_TYPE(Type_create_subarray,
                    (int dimensions, const Count* sizes, const Count* parts, const Count* starts,
                     int order, Handle old, Handles made),
                    (dimensions, sizes, parts, starts, order, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_resized, (Handle old, Aint lower, Aint extent, Handles made),
                    (old, lower, extent, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_hindexed_block,
                    (Count count, Count length, const Aint* places, Handle old, Handles made),
                    (count, length, places, old, made), old)
LOCKSTEP_MAKES_TYPE(Type_create_darray,
                    (int ranks, int rank, int dimensions, const Count* sizes, const int* ways,
                     const int* arguments, const int* parts, int order, Handle old, Handles made),
                    (ranks, rank, dimensions, sizes, ways, arguments, parts, order, old, made), old)
LOCKSTEP_WATCHED(
    Type_dup, (Handle old, Handles made), (old, made), , if (result == kMpiSuccess) {
      MadeType(*made, ElementTypeOf(old), events::Call::kType_dup, call.site());
      CommittedType(*made);  // as the old one, which is all that is used
    })
LOCKSTEP_WATCHED(Type_commit, (Handles type), (type), ,
                 if (result == kMpiSuccess) CommittedType(*type))

// These need no commit, and may have the handle of what was freed.
#define LOCKSTEP_GIVES_TYPE(NAME, PARAMS, ARGUMENTS) \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, , if (result == kMpiSuccess) GotType(*given))
LOCKSTEP_GIVES_TYPE(Type_create_f90_integer, (int range, Handles given), (range, given))
LOCKSTEP_GIVES_TYPE(Type_create_f90_real, (int digits, int range, Handles given),
                    (digits, range, given))
LOCKSTEP_GIVES_TYPE(Type_create_f90_complex, (int digits, int range, Handles given),
                    (digits, range, given))
LOCKSTEP_GIVES_TYPE(Type_match_size, (int type_class, int size, Handles given),
                    (type_class, size, given))
LOCKSTEP_WATCHED(Type_get_contents,
                 (Handle type, int most_ints, int most_places, int most, int* ints, Aint* places,
                  Handles given),
                 (type, most_ints, most_places, most, ints, places, given), ,
                 for (int each = 0; each < most && result == kMpiSuccess; ++each)
                     GotPart(given[each], call.site()))

LOCKSTEP_WATCHED_NEW(
    Type_get_contents, Type_get_contents_c,
    (Handle type, std::int64_t most_ints, std::int64_t most_places, std::int64_t most_counts,
     std::int64_t most, int* ints, Aint* places, std::int64_t* counts, Handles given),
    (type, most_ints, most_places, most_counts, most, ints, places, counts, given), ,
    for (int each = 0; each < most && result == kMpiSuccess;
         ++each) { GotPart(given[each], call.site()); })

LOCKSTEP_SIZED(Op_create, (void* function, int commutes, Handles made), (function, commutes, made),
               , if (result == kMpiSuccess) MadeOp(*made, events::Call::kOp_create, call.site()))

}  // namespace lockstep::watch::preload
