// The only place where agents, or who serves them, call MPI: one gathering of texts.
#include "core/control/rendezvous/mpi_gather.h"

#include <mpi.h>

#include <algorithm>

namespace lockstep::control::rendezvous {
namespace {

Status Check(int error, const char* call) {
  if (error == MPI_SUCCESS) return OkStatus();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, text, &length);
  return EnvironmentError(
      "{} failed while the agents exchanged addresses: {}; try the launcher with a plain MPI "
      "program",
      call, text);
}

Status EnsureInitialized(bool on_threads) {
  int initialized = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check(MPI_Initialized(&initialized), "MPI_Initialized"));
  if (initialized) return OkStatus();
  const int wanted = on_threads ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
  int provided = 0;  // asked for again by who needs it
  return Check(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread");
}

// Every rank's part padded to the longest.
Result<std::vector<std::string>> Gather(const std::string& part, MPI_Comm communicator) {
  int size = 0;
  LOCKSTEP_RETURN_IF_ERROR(Check(MPI_Comm_size(communicator, &size), "MPI_Comm_size"));
  int own = static_cast<int>(part.size());
  std::vector<int> lengths(static_cast<std::size_t>(size));
  LOCKSTEP_RETURN_IF_ERROR(Check(
      MPI_Allgather(&own, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator), "MPI_Allgather"));
  const int width = std::max(1, *std::ranges::max_element(lengths));
  std::string padded = part;
  padded.resize(static_cast<std::size_t>(width));
  std::string all(static_cast<std::size_t>(width) * static_cast<std::size_t>(size), '\0');
  LOCKSTEP_RETURN_IF_ERROR(Check(
      MPI_Allgather(padded.data(), width, MPI_BYTE, all.data(), width, MPI_BYTE, communicator),
      "MPI_Allgather"));
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    parts.push_back(all.substr(rank * static_cast<std::size_t>(width),
                               static_cast<std::size_t>(lengths[rank])));
  }
  return parts;
}

}  // namespace

Result<std::vector<std::string>> MpiGather(const std::string& part, bool keep_initialized,
                                           bool on_threads) {
  LOCKSTEP_RETURN_IF_ERROR(EnsureInitialized(on_threads));
  // A copy: collectives on MPI_COMM_WORLD itself belong to the system under test.
  MPI_Comm communicator = MPI_COMM_NULL;
  LOCKSTEP_RETURN_IF_ERROR(Check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup"));
  Result<std::vector<std::string>> parts = Gather(part, communicator);
  LOCKSTEP_RETURN_IF_ERROR(Check(MPI_Comm_free(&communicator), "MPI_Comm_free"));
  if (!keep_initialized) LOCKSTEP_RETURN_IF_ERROR(Check(MPI_Finalize(), "MPI_Finalize"));
  return parts;
}

}  // namespace lockstep::control::rendezvous
