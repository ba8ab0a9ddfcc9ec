// An LD_PRELOAD library that breaks MPI_Recv of one rank, or what it sends by MPI_Isend, for tests
// of messages.
//
//   FAULTY_RANK=1 FAULTY_CALL=50 FAULTY_KIND=flip|hang|sleep|flip_sent
//   flip   one bit of what that call received, if it is of more than 8 bytes, else of the next such
//   hang   that call never returns, and nothing of its message is taken
//   sleep  from that call on, messages from FAULTY_PEER (default 0) come 2 ms late
//   flip_sent  one bit of what that MPI_Isend sends, and of what later ones send from there
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "bench/peers/testing/settings.h"

using lockstep::bench::peers::NumberFrom;
using lockstep::bench::peers::TextFrom;

extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int target, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  static const std::string kind = TextFrom("FAULTY_KIND");
  static const double faulty_call = NumberFrom("FAULTY_CALL", 50);
  static int calls = 0;
  static int rank = -1;
  if (rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (++calls == faulty_call && kind == "flip_sent" && rank == NumberFrom("FAULTY_RANK", 1)) {
    *static_cast<std::uint8_t*>(const_cast<void*>(data)) ^= 4;
  }
  return PMPI_Isend(data, count, type, target, tag, comm, request);
}

extern "C" int MPI_Recv(void* data, int count, MPI_Datatype type, int source, int tag,
                        MPI_Comm comm, MPI_Status* status) {
  static const std::string kind = TextFrom("FAULTY_KIND");
  static const double faulty_call = NumberFrom("FAULTY_CALL", 50);
  static int calls = 0;
  static int rank = -1;
  static bool done = false;
  if (rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ++calls;
  const bool now = rank == NumberFrom("FAULTY_RANK", 1) && calls >= faulty_call;
  if (now && kind == "hang") {
    for (;;) pause();
  }
  const int code = PMPI_Recv(data, count, type, source, tag, comm, status);
  if (now && kind == "sleep" && source == NumberFrom("FAULTY_PEER", 0)) usleep(2000);
  if (now && kind == "flip" && count > 8 && !done) {
    static_cast<std::uint8_t*>(data)[count / 2] ^= 4;
    done = true;
  }
  return code;
}
