// The writer of a segment. It relies on three things. The folder is named by the environment, the
// reader publishes how far it has read, and a chunk is allocated before it is written. Whatever
// fails here ends the recording and says so in one line; the program never notices.
#include "watch/preload/recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "watch/events/ticks.h"

namespace lockstep::watch::preload {

namespace internal {
events::Header* header = nullptr;
}  // namespace internal

namespace {

using events::Event;
using events::Header;

int segment = -1;
Event* ring = nullptr;
std::atomic<std::uint16_t> threads_seen{0};
constinit thread_local std::uint16_t thread_number __attribute__((tls_model("initial-exec"))) = 0;

bool AllocateChunk(std::uint64_t first_event) {
  const std::uint64_t at = first_event % events::kRingEvents;
  return fallocate(segment, 0, static_cast<off_t>(events::kHeaderBytes + at * sizeof(Event)),
                   static_cast<off_t>(events::kChunkEvents * sizeof(Event))) == 0;
}

// Only what is executable: that is where return addresses point.
void CopyMaps(Header& to) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  if (!maps) return;
  char line[1024];
  std::size_t used = 0;
  while (std::fgets(line, sizeof line, maps)) {
    const std::size_t length = std::strlen(line);
    if (!std::strstr(line, " r-xp ") || used + length >= sizeof to.maps) continue;
    std::memcpy(to.maps + used, line, length);
    used += length;
  }
  std::fclose(maps);
}

// Field 22 of /proc/self/stat, behind a name that may hold anything.
std::uint64_t StartTime() {
  std::FILE* const file = std::fopen("/proc/self/stat", "r");
  if (!file) return 0;
  char text[1024];
  const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = 0;
  const char* at = std::strrchr(text, ')');
  constexpr int kFields = 20;
  for (int field = 0; at && field < kFields; ++field) at = std::strchr(at + 1, ' ');
  return at ? std::strtoull(at, nullptr, 10) : 0;
}

void InChild() { internal::header = nullptr; }

int LauncherRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return -1;
}

void NoteJob(Header& to) {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"}) {
    if (const char* text = std::getenv(name)) {
      std::snprintf(to.job, sizeof to.job, "%s", text);
      return;
    }
  }
}

// The exit code is known to handlers of exit() only.
void NoteExitCode(int code, void*) {
  if (internal::header) internal::header->exit_code.store(code);
}

__attribute__((destructor)) void NoteExit() {
  if (internal::header) internal::header->exited.store(1, std::memory_order_release);
}

}  // namespace

void Say(const char* what) {
  char line[256];
  const int length = std::snprintf(
      line, sizeof line, "lockstep watch: process %d is not watched: %s\n", getpid(), what);
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) return;
}

bool OpenSegment() {
  const char* const folder = std::getenv(events::kFolderVariable);
  if (!folder || internal::header) return false;
  char path[512];
  std::snprintf(path, sizeof path, "%s/%d%s", folder, getpid(), events::kSuffix);
  segment = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (segment < 0) return Say(std::strerror(errno)), false;
  void* memory = MAP_FAILED;
  if (ftruncate(segment, static_cast<off_t>(events::kSegmentBytes)) == 0 &&
      fallocate(segment, 0, 0, static_cast<off_t>(events::kHeaderBytes)) == 0 && AllocateChunk(0)) {
    memory = mmap(nullptr, events::kSegmentBytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, segment, 0);
  }
  if (memory == MAP_FAILED) {
    Say(std::strerror(errno));
    unlink(path);
    close(segment);
    return false;
  }
  Header* const header = static_cast<Header*>(memory);
  ring = reinterpret_cast<Event*>(static_cast<char*>(memory) + events::kHeaderBytes);
  header->pid = getpid();
  header->started = StartTime();
  header->launcher_rank = LauncherRank();
  header->rank.store(-1);
  NoteJob(*header);
  CopyMaps(*header);
  pthread_atfork(nullptr, nullptr, InChild);
  on_exit(NoteExitCode, nullptr);
  header->magic.store(events::kMagic, std::memory_order_release);
  internal::header = header;
  return true;
}

void SetRank(int rank, int size, bool threads) {
  internal::header->threads.store(threads ? 1 : 0);
  internal::header->size.store(size);
  internal::header->rank.store(rank, std::memory_order_release);
}

void Stop(events::Stopped why) {
  Header* const header = internal::header;
  if (!header) return;
  internal::header = nullptr;
  header->stopped.store(static_cast<std::uint32_t>(why), std::memory_order_release);
  Say(why == events::Stopped::kRingFull  ? "the watcher is too far behind, or gone"
      : why == events::Stopped::kNoSpace ? "no space for its events"
                                         : "too many handles at a time");
}

void Write(const Event& event) {
  Header* const header = internal::header;
  if (!header) return;
  const std::uint64_t number = header->head.fetch_add(1, std::memory_order_relaxed);
  if (number % events::kChunkEvents == 0) {
    const std::uint64_t ahead = number + events::kChunkEvents;
    const std::uint64_t tail = header->tail.load(std::memory_order_acquire);
    if (ahead + events::kChunkEvents > tail + events::kRingEvents) {
      return Stop(events::Stopped::kRingFull);
    }
    if (!AllocateChunk(ahead)) return Stop(events::Stopped::kNoSpace);
  }
  if (thread_number == 0) thread_number = threads_seen.fetch_add(1) + 1;
  Event copy = event;
  copy.thread = thread_number;
  copy.ticks = events::NowTicks();
  copy.phase = events::Phase::kNothing;
  Event& place = ring[number % events::kRingEvents];
  place = copy;
  std::atomic_ref<events::Phase>(place.phase).store(event.phase, std::memory_order_release);
}

void CountPoll(std::uint64_t site) {
  internal::header->poll_site.store(site, std::memory_order_relaxed);
  internal::header->polls.fetch_add(1, std::memory_order_relaxed);
}

void* FindFunction(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  for (const char* library : {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi.so"}) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    if (void* const found = dlsym(handle, name)) return found;
  }
  return nullptr;
}

}  // namespace lockstep::watch::preload
