// The table of MPI's blocking and non-blocking calls, one arm a collective. Counts fit an int
// already; the communicator above has divided what is larger. Blocking calls return MPI's bare
// code, because this is the code inside the measured interval.
#include "core/comm/mpi/mpi_call.h"

#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/comm/mpi/mpi_session.h"

namespace lockstep::comm::mpi {
namespace {

constexpr int kTag = 0;

constexpr std::string_view kBlockingNames[] = {
    "MPI_Allreduce", "MPI_Bcast", "MPI_Barrier", "MPI_Allgather", "MPI_Reduce_scatter_block",
    "MPI_Reduce",    "MPI_Send",  "MPI_Recv"};

std::string_view NameOf(const MpiCall& call) {
  return kBlockingNames[static_cast<std::size_t>(call.collective)];
}

int NonblockingCall(const MpiCall& call, MPI_Comm comm, MPI_Request* request) {
  const auto& [collective, send, recv, count, type, op, root] = call;
  switch (collective) {
    case Collective::kAllReduce:
      return MPI_Iallreduce(send, recv, count, type, op, comm, request);
    case Collective::kBroadcast:
      return MPI_Ibcast(recv, count, type, root, comm, request);
    case Collective::kBarrier:
      return MPI_Ibarrier(comm, request);
    case Collective::kAllGather:
      return MPI_Iallgather(send, count, type, recv, count, type, comm, request);
    case Collective::kReduceScatter:
      return MPI_Ireduce_scatter_block(send, recv, count, type, op, comm, request);
    case Collective::kReduce:
      return MPI_Ireduce(send, recv, count, type, op, root, comm, request);
    case Collective::kSend:
      return MPI_Isend(send, count, type, root, kTag, comm, request);
    case Collective::kRecv:
      return MPI_Irecv(recv, count, type, root, kTag, comm, request);
  }
  return MPI_ERR_OTHER;
}

}  // namespace

Status BlockingError(const MpiCall& call, int code) { return MpiError(code, NameOf(call)); }

int BlockingCall(const MpiCall& call, MPI_Comm comm) {
  const auto& [collective, send, recv, count, type, op, root] = call;
  switch (collective) {
    case Collective::kAllReduce:
      return MPI_Allreduce(send, recv, count, type, op, comm);
    case Collective::kBroadcast:
      return MPI_Bcast(recv, count, type, root, comm);
    case Collective::kBarrier:
      return MPI_Barrier(comm);
    case Collective::kAllGather:
      return MPI_Allgather(send, count, type, recv, count, type, comm);
    case Collective::kReduceScatter:
      return MPI_Reduce_scatter_block(send, recv, count, type, op, comm);
    case Collective::kReduce:
      return MPI_Reduce(send, recv, count, type, op, root, comm);
    case Collective::kSend:
      return MPI_Send(send, count, type, root, kTag, comm);
    case Collective::kRecv:
      return MPI_Recv(recv, count, type, root, kTag, comm, MPI_STATUS_IGNORE);
  }
  return MPI_ERR_OTHER;
}

Status PostCall(const MpiCall& call, MPI_Comm comm, MPI_Request& request) {
  const int code = NonblockingCall(call, comm, &request);
  if (code == MPI_SUCCESS) return OkStatus();
  std::string name = "MPI_I" + std::string(NameOf(call).substr(4));
  name[5] = static_cast<char>(std::tolower(name[5]));
  return MpiError(code, name);
}

}  // namespace lockstep::comm::mpi
