// Stands before libc in the program that links it: CLOCK_REALTIME plus an offset that an agent
// writes into shared memory (core/agent/agent_faults.h).
// Monotonic clocks are the system's. Waits until a time of day are taken back by the offset, so
// that they last as long as the program means. libc only.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// Older than any machine's time since it was started: a time of day.
constexpr time_t kTimeOfDay = 1'000'000'000;
constexpr int64_t kNone = 0;

const int64_t* OffsetMemory() {
  const char* const path = getenv("LOCKSTEP_CLOCK_OFFSET");
  const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return &kNone;
  void* const memory = mmap(nullptr, sizeof kNone, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? &kNone : static_cast<const int64_t*>(memory);
}

// Set before main(), where there is one thread: an agent sees by it that the clock can be moved.
const int64_t* offset_memory = nullptr;
__attribute__((constructor)) void MapOffset() { offset_memory = OffsetMemory(); }

int64_t OffsetNs() {
  return offset_memory == nullptr ? 0 : __atomic_load_n(offset_memory, __ATOMIC_RELAXED);
}

bool OfDay(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

timespec Moved(timespec time, int64_t by_ns) {
  const int64_t ns = time.tv_sec * kSecondNs + time.tv_nsec + by_ns;
  return {ns / kSecondNs, ns % kSecondNs};
}

// As the system's clock has it.
timespec Meant(const timespec& time) {
  return time.tv_sec > kTimeOfDay ? Moved(time, -OffsetNs()) : time;
}

// The function of libc that ours stands before. Some have an older version that must not be taken.
template <typename Function>
Function* Next(const char* name) {
  void* found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result == 0 && OfDay(clock)) *time = Moved(*time, OffsetNs());
  return result;
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(timespec* result, int base) noexcept {
  if (base != TIME_UTC || clock_gettime(CLOCK_REALTIME, result) != 0) return 0;
  return base;
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static auto* const next =
      Next<int(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep");
  if (!OfDay(clock) || (flags & TIMER_ABSTIME) == 0) return next(clock, flags, time, left);
  const timespec meant = Meant(*time);
  return next(clock, flags, &meant, left);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* time) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const timespec meant = Meant(*time);
  return next(condition, mutex, &meant);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  const timespec meant = OfDay(clock) ? Meant(*time) : *time;
  return next(condition, mutex, clock, &meant);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
  static auto* const next = Next<int(pthread_mutex_t*, const timespec*)>("pthread_mutex_timedlock");
  const timespec meant = Meant(*time);
  return next(mutex, &meant);
}

int sem_timedwait(sem_t* semaphore, const timespec* time) {
  static auto* const next = Next<int(sem_t*, const timespec*)>("sem_timedwait");
  const timespec meant = Meant(*time);
  return next(semaphore, &meant);
}

}  // extern "C"
