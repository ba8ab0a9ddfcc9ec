// An LD_PRELOAD library with which a process lives by another clock, for tests: as on a host whose
// quartz runs at another rate and was started at another time.
//
//   LOCKSTEP_TICKS=clock_monotonic PLANTED_CLOCK="OFFSET_NS DRIFT_PPM SINCE_RAW_NS"
//   clock_gettime of every clock that counts time gives OFFSET_NS more, and a part of DRIFT_PPM of
//   the time since CLOCK_MONOTONIC_RAW showed SINCE_RAW_NS: the same in all processes of the host
//
// Without PLANTED_CLOCK it does nothing. libc only; waits until a moment are not moved, so an
// offset must not be negative.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

using GetTime = int(clockid_t, timespec*);

struct Planted {
  long long offset_ns = 0;
  double drift_ppm = 0;
  long long since_raw_ns = 0;
};

Planted FromEnvironment() {
  Planted planted;
  const char* const text = getenv("PLANTED_CLOCK");
  if (text == nullptr) return planted;
  if (sscanf(text, "%lld %lf %lld", &planted.offset_ns, &planted.drift_ppm,
             &planted.since_raw_ns) != 3) {
    fprintf(stderr, "planted_clock: PLANTED_CLOCK='%s': give OFFSET_NS DRIFT_PPM SINCE_RAW_NS\n",
            text);
    abort();
  }
  return planted;
}

GetTime* Next() {
  static auto* const next = reinterpret_cast<GetTime*>(dlsym(RTLD_NEXT, "clock_gettime"));
  return next;
}

int64_t NsOf(const timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

int64_t MoreNs() {
  static const Planted planted = FromEnvironment();
  if (planted.since_raw_ns == 0) return 0;
  timespec raw{};
  Next()(CLOCK_MONOTONIC_RAW, &raw);
  const auto since = static_cast<double>(NsOf(raw) - planted.since_raw_ns);
  return planted.offset_ns + static_cast<int64_t>(since * planted.drift_ppm * 1e-6);
}

bool CountsTime(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC ||
         clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const int result = Next()(clock, time);
  if (result != 0 || !CountsTime(clock)) return result;
  const int64_t ns = NsOf(*time) + MoreNs();
  *time = {ns / kSecondNs, ns % kSecondNs};
  return 0;
}
