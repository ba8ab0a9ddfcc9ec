// An LD_PRELOAD library that breaks MPI_Allreduce and what it is made of (MPI_Allgather,
// MPI_Reduce_scatter_block) on one rank, for tests: what a broken network card, driver or library
// would do, at a call that is known. Their calls are counted together.
//
//   FAULTY_RANK=1 FAULTY_CALL=50 FAULTY_KIND=add|flip|flips|hang|spin|exit|sleep|crash|stop|doze
//   add    from that call on, 0.5 is added to one float of the result
//   flip   one bit of the result of that call; flips: and of the next one
//   hang   that call never returns (asleep); spin: likewise, busy
//   exit   that call ends the process with code 9; crash: by SIGSEGV
//   sleep  that call takes 6 s longer
//   stop   the process stops itself before that call, and makes it once it is continued
//   doze   every call of every rank takes a millisecond longer, so that a long run costs little
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "bench/peers/testing/settings.h"

using lockstep::bench::peers::NumberFrom;
using lockstep::bench::peers::TextFrom;

namespace {

// Before the real call: what keeps it from happening.
void Prevent(const std::string& kind) {
  if (kind == "hang") {
    for (;;) pause();
  }
  if (kind == "spin") {
    for (volatile bool forever = true; forever;) {
    }
  }
  if (kind == "exit") _exit(9);
  if (kind == "crash") raise(SIGSEGV);
  if (kind == "sleep") sleep(6);
  if (kind == "stop") raise(SIGSTOP);
}

void AddHalf(void* result, int count) {
  float value;
  char* place = static_cast<char*>(result) + static_cast<std::size_t>(count / 2) * sizeof value;
  std::memcpy(&value, place, sizeof value);
  value += 0.5f;
  std::memcpy(place, &value, sizeof value);
}

// The call that `real` makes, of which `count` floats are the result.
template <typename Call>
int Break(void* recv, int count, const Call& real) {
  static const std::string kind = TextFrom("FAULTY_KIND");
  static const double faulty_call = NumberFrom("FAULTY_CALL", 50);
  static int rank = -1;
  if (rank < 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static int calls = 0;
  ++calls;
  const bool mine = rank == NumberFrom("FAULTY_RANK", 1);
  if (mine && calls == faulty_call) Prevent(kind);
  if (kind == "doze") usleep(1000);
  const int code = real();
  if (mine && kind == "add" && calls >= faulty_call) AddHalf(recv, count);
  const bool flips = calls == faulty_call ? kind.starts_with("flip")
                                          : kind == "flips" && calls == faulty_call + 1;
  if (mine && flips) static_cast<std::uint8_t*>(recv)[1] ^= 4;
  return code;
}

}  // namespace

extern "C" int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return Break(recv, count, [&] { return PMPI_Allreduce(send, recv, count, type, op, comm); });
}

extern "C" int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* recv,
                             int count, MPI_Datatype type, MPI_Comm comm) {
  return Break(recv, count, [&] {
    return PMPI_Allgather(send, send_count, send_type, recv, count, type, comm);
  });
}

extern "C" int MPI_Reduce_scatter_block(const void* send, void* recv, int count, MPI_Datatype type,
                                        MPI_Op op, MPI_Comm comm) {
  return Break(recv, count,
               [&] { return PMPI_Reduce_scatter_block(send, recv, count, type, op, comm); });
}
