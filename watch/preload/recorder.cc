// The writer of a segment. It relies on three things. The folder is named by the environment, the
// reader publishes how far it has read, and a chunk is prepared before it is written. Whatever
// fails here ends the recording and says so in one line; the program never notices.
#include "watch/preload/recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "watch/preload/chunks.h"
#include "watch/preload/real.h"
#include "watch/preload/world.h"

namespace lockstep::watch::preload {

namespace internal {
events::Header* header = nullptr;
bool times = false;
events::Event* newest = nullptr;
}  // namespace internal

namespace {

using events::Event;
using events::Header;

constinit Chunks chunks;
std::atomic<std::uint16_t> threads_seen{0};  // beside the main one

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

void InChild() {
  internal::header = nullptr;
  internal::repeats.End();
}

int LauncherRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return -1;
}

// A proxy of MPICH's mpiexec made the socket over which it serves its process.
void NoteHydra(Header& to) {
  const char* const text = std::getenv("PMI_FD");
  ucred proxy = {};
  socklen_t size = sizeof proxy;
  if (!text || getsockopt(std::atoi(text), SOL_SOCKET, SO_PEERCRED, &proxy, &size) != 0) return;
  char words[4096];
  std::snprintf(words, sizeof words, "/proc/%d/cmdline", proxy.pid);
  const int file = open(words, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? -1 : read(file, words, sizeof words - 1);
  if (file >= 0) close(file);
  if (length <= 0) return;
  words[length] = 0;
  NameOfLaunch(words, static_cast<std::size_t>(length), to.job, sizeof to.job);
}

void NoteJob(Header& to) {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"}) {
    if (const char* text = std::getenv(name)) {
      std::snprintf(to.job, sizeof to.job, "%s", text);
      return;
    }
  }
  NoteHydra(to);
}

constexpr char kNotMine[] = "its file for events is there already";

}  // namespace

void NoteEnd(events::Exit how) {
  internal::header->exited.store(static_cast<std::uint32_t>(how), std::memory_order_release);
}

void Say(const char* what) {
  char line[256];
  const int length = std::snprintf(
      line, sizeof line, "lockstep watch: process %d is not watched: %s\n", getpid(), what);
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) return;
}

namespace {

bool FindPath(char (&path)[512]) {
  const char* const folder = std::getenv(events::kFolderVariable);
  if (folder) std::snprintf(path, sizeof path, "%s/%d%s", folder, getpid(), events::kSuffix);
  return folder != nullptr;
}

// This process was watched, and has become another program since. What that one did is not known.
// `over`: nor does it matter after MPI_Finalize. What is to be said; null: nothing, or no more.
const char* EndEarlierProgram(const char* path, bool over) {
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat facts;
  void* memory = MAP_FAILED;
  if (file >= 0 && fstat(file, &facts) == 0 &&
      facts.st_size == static_cast<off_t>(events::kSegmentBytes)) {
    memory = mmap(nullptr, sizeof(Header), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return kNotMine;
  Header* const header = static_cast<Header*>(memory);
  const bool mine = header->pid == getpid() && header->started == StartTime();
  constexpr auto kReplaced = static_cast<std::uint32_t>(events::Stopped::kReplaced);
  const bool ends = mine && (!over || header->finalized.load() == 0);
  const bool news = ends && header->stopped.exchange(kReplaced) != kReplaced;
  munmap(memory, sizeof(Header));
  if (!mine) return kNotMine;
  return news ? "another program ran in it before (exec)" : nullptr;
}

}  // namespace

bool OpenSegment() {
  char path[512];
  if (internal::header || !FindPath(path)) return false;
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0 && errno == EEXIST) {
    if (const char* const why = EndEarlierProgram(path, false)) Say(why);
    return false;
  }
  if (file < 0) return Say(std::strerror(errno)), false;
  Header* const header = chunks.Open(file);
  if (!header) {
    Say(std::strerror(errno));
    unlink(path);
    close(file);
    return false;
  }
  internal::times = std::getenv(events::kTimesVariable) != nullptr;
  header->pid = getpid();
  header->started = StartTime();
  header->group = getpgrp();
  struct stat facts;
  if (stat("/proc/self/ns/pid", &facts) == 0) header->pid_namespace = facts.st_ino;
  header->launcher_rank = LauncherRank();
  header->rank.store(-1);
  NoteJob(*header);
  CopyMaps(*header);
  pthread_atfork(nullptr, nullptr, InChild);
  AwaitExit();
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

namespace internal {

std::uint16_t NumberThread() {
  thread_number = events::kMainThreadNumber;
  if (gettid() != getpid()) thread_number += threads_seen.fetch_add(1) + 1;
  if (Header* const to = header) {
    to->callers[thread_number % events::kMostCallers].store(
        events::CallerWord(thread_number, gettid()));
  }
  return thread_number;
}

std::uint64_t WriteOrCount(const Event& event) {
  const std::uint64_t number = header->head.load(std::memory_order_relaxed);
  const bool counts = !repeats.counting() && repeats.Comes(event, number);
  if (!counts) {
    const std::uint64_t ticks = Write(event);
    if (newest) repeats.Note(newest, number);
    return ticks;
  }
  Event* const place = Claim(*header);
  if (!place) return 0;
  newest = nullptr;
  repeats.Begin(place, event.thread, events::NowTicks());
  return 0;
}

void EndRepeats(Header& to) {
  to.counted.store(to.counted.load(std::memory_order_relaxed) + repeats.End(),
                   std::memory_order_relaxed);
}

// Another thread may have stopped to record meanwhile.
bool PrepareChunkAfter(Header& to, std::uint64_t event) {
  if (to.stopped.load(std::memory_order_relaxed) != 0) {
    header = nullptr;
    return false;
  }
  const events::Stopped why = chunks.Prepare(event / events::kChunkEvents + 1);
  if (why != events::Stopped::kNo) Stop(why);
  return why == events::Stopped::kNo;
}

// While another thread prepares this chunk, there is nowhere to write to.
Event* ClaimBesideOthers(Header& to) {
  const std::uint64_t number = to.head.fetch_add(1, std::memory_order_relaxed);
  while (to.ready.load(std::memory_order_acquire) <= number / events::kChunkEvents) {
    if (std::atomic_ref(header).load(std::memory_order_relaxed) == nullptr) return nullptr;
    sched_yield();
  }
  if (number % events::kChunkEvents == 0 && !PrepareChunkAfter(to, number)) return nullptr;
  return PlaceOf(to, number);
}

}  // namespace internal

void CountPoll(Header& to, events::Call call, std::uint64_t site) {
  to.poll_call.store(call, std::memory_order_relaxed);
  to.poll_site.store(site, std::memory_order_relaxed);
  if (several_threads) {
    to.polls.fetch_add(1, std::memory_order_relaxed);
  } else {
    to.polls.store(to.polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

namespace {
const volatile void* volatile bound_at = &bound_at;  // its address, once this library is bound
bool started = false;

// Also of a program that never calls MPI: else its end would be taken for that of a rank.
[[gnu::constructor]] void Start() {
  started = true;
  char path[512];
  if (!FindPath(path) || access(path, F_OK) != 0) return;
  const char* const why = EndEarlierProgram(path, true);
  if (why && why != kNotMine) Say(why);
}
}  // namespace

// Before the program starts, dlopen() would run what its libraries begin with, too early.
LOCKSTEP_UNCHECKED bool MayHave(const char* name) {
  if (bound_at != &bound_at) return true;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // A lookup that fails allocates, by a runtime that can't begin before the C library has.
  if (!started) return true;
#endif
  return (started ? FindFunction(name) : dlsym(RTLD_NEXT, name)) != nullptr;
}

LOCKSTEP_UNCHECKED void* FindFunction(const char* name) {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  static constexpr const char* kLibraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12",
                                               "libmpi.so"};
  for (const char* const library : kLibraries) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    if (void* const found = dlsym(handle, name)) return found;
  }
  return nullptr;
}

}  // namespace lockstep::watch::preload
