// What one look at the clock costs, in nanoseconds: MPI_Wtime, with which other benchmarks stamp,
// and the stamp of ours. What lies between two stamps contains one such look.
//
// usage: clock_cost     prints: MPI_Wtime, stamp
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/clock.h"

namespace {

constexpr int kLooks = 1000;
volatile double kept;  // so that no look is left out

// The median of batches, of which some are interrupted.
template <typename Look>
double CostNs(Look look) {
  std::array<double, 101> costs;
  for (double& cost : costs) {
    const std::int64_t begin = lockstep::MonotonicNs();
    for (int i = 0; i < kLooks; ++i) kept = static_cast<double>(look());
    cost = static_cast<double>(lockstep::MonotonicNs() - begin) / kLooks;
  }
  std::ranges::nth_element(costs, costs.begin() + costs.size() / 2);
  return costs[costs.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::printf("%.2f %.2f\n", CostNs(MPI_Wtime), CostNs(lockstep::NowTicks));
  MPI_Finalize();
  return 0;
}
