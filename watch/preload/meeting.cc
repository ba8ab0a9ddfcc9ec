// One broadcast at the end of MPI_Init, before the program can call anything. Rank 0's watcher left
// a file in its folder; the same file appears in the folders of the others. It holds a secret, so
// its mode is 0600.
#include "watch/preload/meeting.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "watch/events/segment.h"
#include "watch/preload/mpi_names.h"
#include "watch/preload/real.h"
#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

// The length, and what the file holds.
using Bytes = unsigned char[events::kMostEndpointBytes + 1];

void ReadEndpoint(const char* path, Bytes& bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return;
  const ssize_t length = read(file, bytes + 1, events::kMostEndpointBytes);
  if (length > 0) bytes[0] = static_cast<unsigned char>(length);
  close(file);
}

// Whole, or not at all.
void WriteEndpoint(const char* path, const Bytes& bytes) {
  char fresh[600];
  std::snprintf(fresh, sizeof fresh, "%s.new", path);
  const int file = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  const bool whole = write(file, bytes + 1, bytes[0]) == bytes[0];
  close(file);
  if (whole) rename(fresh, path);
}

}  // namespace

void CarryEndpoint() {
  const char* const folder = std::getenv(events::kFolderVariable);
  if (!folder || !std::getenv(events::kMeetVariable)) return;
  const auto broadcast = Real<int(void*, int, Handle, int, Handle)>("PMPI_Bcast");
  const auto rank_of = Real<int(Handle, int*)>("PMPI_Comm_rank");
  if (!broadcast || !rank_of) return;
  char path[560];
  std::snprintf(path, sizeof path, "%s/%s", folder, events::kEndpointFile);
  Bytes bytes = {};
  int rank = 0;
  rank_of(abi.comm_world, &rank);
  if (rank == 0) ReadEndpoint(path, bytes);
  ++internal::depth;
  const int error = broadcast(bytes, sizeof bytes, abi.byte, 0, abi.comm_world);
  --internal::depth;
  if (error == kMpiSuccess && rank != 0 && bytes[0] != 0) WriteEndpoint(path, bytes);
}

}  // namespace lockstep::watch::preload
