// The kernel lists the threads. It is asked without opendir(), which allocates.
#include "watch/preload/library_threads.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "watch/preload/recorder.h"

namespace lockstep::watch::preload {
namespace {

constexpr int kMostThreads = static_cast<int>(events::kLibraryThreads) + 1;

struct Entry {  // as the kernel writes it
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[];
};

// How many there are; kMostThreads + 1: more than `threads` has room for, or not known.
int ListThreads(int* threads) {
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  alignas(Entry) char bytes[4096];  // more than kMostThreads entries, and all that are asked for
  const long size = folder < 0 ? -1 : syscall(SYS_getdents64, folder, bytes, sizeof bytes);
  if (folder >= 0) close(folder);
  if (size < 0) return kMostThreads + 1;
  int count = 0;
  for (long at = 0; at < size;) {
    const auto& entry = *reinterpret_cast<const Entry*>(bytes + at);
    at += entry.length;
    if (entry.name[0] == '.') continue;
    if (count == kMostThreads) return kMostThreads + 1;
    threads[count++] = std::atoi(entry.name);
  }
  return count;
}

}  // namespace

bool IsOnlyThread() {
  int threads[kMostThreads];
  return ListThreads(threads) == 1;
}

void NoteLibraryThreads() {
  int threads[kMostThreads];
  const int count = ListThreads(threads);
  if (count > kMostThreads) return;
  const auto mine = static_cast<int>(syscall(SYS_gettid));
  std::size_t next = 0;
  for (int each = 0; each < count; ++each) {
    if (threads[each] != mine) internal::header->library_threads[next++].store(threads[each]);
  }
}

}  // namespace lockstep::watch::preload
