// The table of MPI's blocking and non-blocking calls, one arm a collective. Counts fit an int
// already; the communicator above has divided what is larger. Blocking calls return MPI's bare
// code, because this is the code inside the measured interval.
#include "core/comm/mpi/mpi_call.h"

#include <cstddef>
#include <string_view>

#include "core/comm/mpi/mpi_session.h"

namespace lockstep::comm::mpi {
namespace {

constexpr int kTag = 0;

constexpr std::string_view kBlockingNames[] = {
    "MPI_Allreduce", "MPI_Bcast", "MPI_Barrier", "MPI_Allgather", "MPI_Reduce_scatter_block",
    "MPI_Reduce",    "MPI_Send",  "MPI_Recv"};

}  // namespace

Status BlockingError(const MpiCall& call, int code) {
  return MpiError(code, kBlockingNames[static_cast<std::size_t>(call.collective)]);
}

int BlockingCall(const MpiCall& call, MPI_Comm comm) {
  switch (call.collective) {
    case collective::Collective::kAllReduce:
      return MPI_Allreduce(call.send, call.recv, call.count, call.type, call.op, comm);
    case collective::Collective::kBroadcast:
      return MPI_Bcast(call.recv, call.count, call.type, call.root, comm);
    case collective::Collective::kBarrier:
      return MPI_Barrier(comm);
    case collective::Collective::kAllGather:
      return MPI_Allgather(call.send, call.count, call.type, call.recv, call.count, call.type,
                           comm);
    case collective::Collective::kReduceScatter:
      return MPI_Reduce_scatter_block(call.send, call.recv, call.count, call.type, call.op, comm);
    case collective::Collective::kReduce:
      return MPI_Reduce(call.send, call.recv, call.count, call.type, call.op, call.root, comm);
    case collective::Collective::kSend:
      return MPI_Send(call.send, call.count, call.type, call.root, kTag, comm);
    case collective::Collective::kRecv:
      return MPI_Recv(call.recv, call.count, call.type, call.root, kTag, comm, MPI_STATUS_IGNORE);
  }
  return MPI_ERR_OTHER;
}

Status PostCall(const MpiCall& call, MPI_Comm comm, MPI_Request& request) {
  switch (call.collective) {
    case collective::Collective::kAllReduce:
      return FromMpi(
          MPI_Iallreduce(call.send, call.recv, call.count, call.type, call.op, comm, &request),
          "MPI_Iallreduce");
    case collective::Collective::kBroadcast:
      return FromMpi(MPI_Ibcast(call.recv, call.count, call.type, call.root, comm, &request),
                     "MPI_Ibcast");
    case collective::Collective::kBarrier:
      return FromMpi(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
    case collective::Collective::kAllGather:
      return FromMpi(MPI_Iallgather(call.send, call.count, call.type, call.recv, call.count,
                                    call.type, comm, &request),
                     "MPI_Iallgather");
    case collective::Collective::kReduceScatter:
      return FromMpi(MPI_Ireduce_scatter_block(call.send, call.recv, call.count, call.type, call.op,
                                               comm, &request),
                     "MPI_Ireduce_scatter_block");
    case collective::Collective::kReduce:
      return FromMpi(MPI_Ireduce(call.send, call.recv, call.count, call.type, call.op, call.root,
                                 comm, &request),
                     "MPI_Ireduce");
    case collective::Collective::kSend:
      return FromMpi(MPI_Isend(call.send, call.count, call.type, call.root, kTag, comm, &request),
                     "MPI_Isend");
    case collective::Collective::kRecv:
      return FromMpi(MPI_Irecv(call.recv, call.count, call.type, call.root, kTag, comm, &request),
                     "MPI_Irecv");
  }
  return Unsupported("mpi: a collective that is not in the table");
}

}  // namespace lockstep::comm::mpi
