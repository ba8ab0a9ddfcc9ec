// How the processors of two ranks reach each other: a cache line there and back, in nanoseconds.
// On a virtual machine two processors are threads of one core at one time and two cores at another.
//
// usage: line_round_trip     prints: the fastest pair's, of the first two processors; nan: unknown
#include <sched.h>

#include <cstdio>
#include <vector>

#include "bench/floors/reference.h"

int main() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<std::vector<int>> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back({cpu});
  }
  lockstep::bench::floors::Reference reference(cpus, /*largest_bytes=*/0);
  std::printf("%.1f\n", reference.Measure().line_round_trip_ns);
  return 0;
}
