// How the processors of two ranks reach each other: a cache line there and back, in nanoseconds.
// On a virtual machine two processors are threads of one core at one time and two cores at another.
//
// usage: line_round_trip     prints: that of the first two processors; nan: unknown
#include <cstdio>
#include <vector>

#include "bench/floors/reference.h"
#include "core/base/process_stat.h"

int main() {
  std::vector<std::vector<int>> cpus;
  for (const int cpu : lockstep::AllowedCpus()) {
    if (cpus.size() < 2) cpus.push_back({cpu});
  }
  lockstep::bench::floors::Reference reference(cpus, /*largest_bytes=*/0);
  std::printf("%.1f\n", reference.Measure().line_round_trip_ns);
  return 0;
}
