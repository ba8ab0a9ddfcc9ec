// Communicators, groups, datatypes and operators: what makes them, and what frees them.
#include "watch/preload/watched.h"

#define LOCKSTEP_MAKES_COMM(NAME, PARAMS, ARGUMENTS, PARENT)         \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, call.Collective(PARENT), \
                   if (result == MPI_SUCCESS)                        \
                       preload::MadeComm(PARENT, *made, 0, events::Call::k##NAME, call.site()))

LOCKSTEP_MAKES_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made), comm)
LOCKSTEP_MAKES_COMM(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* made),
                    (comm, info, made), comm)
LOCKSTEP_WATCHED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made),
                 (comm, color, key, made), call.Collective(comm);
                 if (color < 0 && color != MPI_UNDEFINED) call.BadArgument(),
                 if (result == MPI_SUCCESS)
                     preload::MadeComm(comm, *made, 0, events::Call::kComm_split, call.site()))
LOCKSTEP_MAKES_COMM(Comm_split_type,
                    (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
                    (comm, type, key, info, made), comm)
LOCKSTEP_MAKES_COMM(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* made),
                    (comm, group, made), comm)
LOCKSTEP_WATCHED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made),
                 (comm, group, tag, made), ,
                 if (result == MPI_SUCCESS)
                     preload::MadeComm(comm, *made, static_cast<std::uint64_t>(tag) + 1,
                                       events::Call::kComm_create_group, call.site()))
LOCKSTEP_WATCHED(
    Cart_create,
    (MPI_Comm comm, int dimensions, const int* sizes, const int* periods, int reorder,
     MPI_Comm* made),
    (comm, dimensions, sizes, periods, reorder, made), call.Collective(comm);
    for (int each = 0; each < dimensions; ++each) {
      if (sizes[each] <= 0) call.BadArgument();
    },
    if (result == MPI_SUCCESS)
        preload::MadeComm(comm, *made, 0, events::Call::kCart_create, call.site()))
LOCKSTEP_MAKES_COMM(Cart_sub, (MPI_Comm comm, const int* remain, MPI_Comm* made),
                    (comm, remain, made), comm)
LOCKSTEP_MAKES_COMM(Graph_create,
                    (MPI_Comm comm, int nodes, const int* index, const int* edges, int reorder,
                     MPI_Comm* made),
                    (comm, nodes, index, edges, reorder, made), comm)
LOCKSTEP_MAKES_COMM(Dist_graph_create,
                    (MPI_Comm comm, int count, const int* nodes, const int* degrees,
                     const int* targets, const int* weights, MPI_Info info, int reorder,
                     MPI_Comm* made),
                    (comm, count, nodes, degrees, targets, weights, info, reorder, made), comm)
LOCKSTEP_MAKES_COMM(
    Dist_graph_create_adjacent,
    (MPI_Comm comm, int in, const int* sources, const int* source_weights, int out,
     const int* targets, const int* target_weights, MPI_Info info, int reorder, MPI_Comm* made),
    (comm, in, sources, source_weights, out, targets, target_weights, info, reorder, made), comm)
LOCKSTEP_WATCHED(Intercomm_create,
                 (MPI_Comm comm, int leader, MPI_Comm peer_comm, int peer, int tag, MPI_Comm* made),
                 (comm, leader, peer_comm, peer, tag, made), ,
                 if (result == MPI_SUCCESS)
                     preload::MadeComm(comm, *made, static_cast<std::uint64_t>(tag) + 1,
                                       events::Call::kIntercomm_create, call.site()))
LOCKSTEP_WATCHED(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm* made), (comm, high, made), ,
                 if (result == MPI_SUCCESS)
                     preload::MadeComm(MPI_COMM_WORLD, *made, 1, events::Call::kIntercomm_merge,
                                       call.site()))

// A communicator that has no coordinates is none that this may be asked of.
LOCKSTEP_WATCHED(
    Cart_get, (MPI_Comm comm, int most, int* sizes, int* periods, int* coordinates),
    (comm, most, sizes, periods, coordinates), call.Collective(comm);
    int topology = MPI_CART; if (preload::CommOf(comm) > events::kFreedComm) {
      preload::Real<int(MPI_Comm, int*)>("PMPI_Topo_test")(comm, &topology);
    } if (topology != MPI_CART) call.BadArgument(), )

#define LOCKSTEP_FREES(NAME, TYPE, NULL_HANDLE, FREED)                         \
  LOCKSTEP_WATCHED(NAME, (TYPE * handle), (handle), const TYPE kept = *handle, \
                   if (result == MPI_SUCCESS && kept != (NULL_HANDLE))         \
                       preload::FREED(kept, call.site()))
LOCKSTEP_WATCHED(Comm_free, (MPI_Comm * handle), (handle), const MPI_Comm kept = *handle;
                 call.Collective(kept),
                 if (result == MPI_SUCCESS) preload::FreedComm(kept, call.site()))
LOCKSTEP_WATCHED(Comm_disconnect, (MPI_Comm * handle), (handle), const MPI_Comm kept = *handle;
                 call.Collective(kept),
                 if (result == MPI_SUCCESS) preload::FreedComm(kept, call.site()))
LOCKSTEP_FREES(Group_free, MPI_Group, MPI_GROUP_NULL, FreedGroup)
LOCKSTEP_FREES(Type_free, MPI_Datatype, MPI_DATATYPE_NULL, FreedType)
LOCKSTEP_FREES(Op_free, MPI_Op, MPI_OP_NULL, FreedOp)

#define LOCKSTEP_MAKES_GROUP(NAME, PARAMS, ARGUMENTS) \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, ,         \
                   if (result == MPI_SUCCESS)         \
                       preload::MadeGroup(*made, events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_GROUP(Comm_group, (MPI_Comm comm, MPI_Group* made), (comm, made))
LOCKSTEP_MAKES_GROUP(Comm_remote_group, (MPI_Comm comm, MPI_Group* made), (comm, made))
LOCKSTEP_MAKES_GROUP(Group_incl, (MPI_Group group, int count, const int* ranks, MPI_Group* made),
                     (group, count, ranks, made))
LOCKSTEP_MAKES_GROUP(Group_excl, (MPI_Group group, int count, const int* ranks, MPI_Group* made),
                     (group, count, ranks, made))
LOCKSTEP_MAKES_GROUP(Group_union, (MPI_Group a, MPI_Group b, MPI_Group* made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_intersection, (MPI_Group a, MPI_Group b, MPI_Group* made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_difference, (MPI_Group a, MPI_Group b, MPI_Group* made), (a, b, made))
LOCKSTEP_MAKES_GROUP(Group_range_incl,
                     (MPI_Group group, int count, int ranges[][3], MPI_Group* made),
                     (group, count, ranges, made))
LOCKSTEP_MAKES_GROUP(Group_range_excl,
                     (MPI_Group group, int count, int ranges[][3], MPI_Group* made),
                     (group, count, ranges, made))

#define LOCKSTEP_MAKES_TYPE(NAME, PARAMS, ARGUMENTS, OLD, COUNT)                    \
  LOCKSTEP_WATCHED(NAME, PARAMS, ARGUMENTS, ,                                       \
                   if (result == MPI_SUCCESS)                                       \
                       preload::MadeType(*made, preload::ElementTypeOf(OLD, COUNT), \
                                         events::Call::k##NAME, call.site()))
LOCKSTEP_MAKES_TYPE(Type_contiguous, (int count, MPI_Datatype old, MPI_Datatype* made),
                    (count, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_vector,
                    (int count, int length, int stride, MPI_Datatype old, MPI_Datatype* made),
                    (count, length, stride, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_create_hvector,
                    (int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype* made),
                    (count, length, stride, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_indexed,
                    (int count, const int* lengths, const int* places, MPI_Datatype old,
                     MPI_Datatype* made),
                    (count, lengths, places, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_create_hindexed,
                    (int count, const int* lengths, const MPI_Aint* places, MPI_Datatype old,
                     MPI_Datatype* made),
                    (count, lengths, places, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_create_indexed_block,
                    (int count, int length, const int* places, MPI_Datatype old,
                     MPI_Datatype* made),
                    (count, length, places, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_create_struct,
                    (int count, const int* lengths, const MPI_Aint* places, const MPI_Datatype* old,
                     MPI_Datatype* made),
                    (count, lengths, places, old, made), old, count)
LOCKSTEP_MAKES_TYPE(Type_create_subarray,
                    (int dimensions, const int* sizes, const int* parts, const int* starts,
                     int order, MPI_Datatype old, MPI_Datatype* made),
                    (dimensions, sizes, parts, starts, order, old, made), &old, 1)
LOCKSTEP_MAKES_TYPE(Type_create_resized,
                    (MPI_Datatype old, MPI_Aint lower, MPI_Aint extent, MPI_Datatype* made),
                    (old, lower, extent, made), &old, 1)
LOCKSTEP_WATCHED(
    Type_dup, (MPI_Datatype old, MPI_Datatype* made), (old, made), , if (result == MPI_SUCCESS) {
      preload::MadeType(*made, preload::ElementTypeOf(&old, 1), events::Call::kType_dup,
                        call.site());
      preload::CommittedType(*made);  // as the old one, which is all that is used
    })
LOCKSTEP_WATCHED(Type_commit, (MPI_Datatype * type), (type), ,
                 if (result == MPI_SUCCESS) preload::CommittedType(*type))

LOCKSTEP_WATCHED(Op_create, (MPI_User_function * function, int commutes, MPI_Op* made),
                 (function, commutes, made), ,
                 if (result == MPI_SUCCESS)
                     preload::MadeOp(*made, events::Call::kOp_create, call.site()))
