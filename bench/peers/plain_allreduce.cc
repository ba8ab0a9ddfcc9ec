// The all-reduce loop that OSU's osu_allreduce has, as a plain MPI program: the independent witness
// for bench_allreduce's times. Shape, counts and definition are OSU's (OSU Micro-Benchmarks 7,
// osu_allreduce): barrier after each call outside the timed region; 1,000 iterations after 100
// warm-ups up to 8 KiB, 100 after 10 above; per iteration the average over ranks of exit - entry.
//
// usage: plain_allreduce [first bytes [last bytes]]     prints: bytes, P50 us, mean us
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr long kLargeMessage = 8192;

// Every iteration's average over ranks, in microseconds, on rank 0.
std::vector<double> Measure(long bytes, float* send, float* recv, int ranks) {
  const int iterations = bytes > kLargeMessage ? 100 : 1000;
  const int warmup = bytes > kLargeMessage ? 10 : 100;
  const int count = static_cast<int>(bytes / static_cast<long>(sizeof(float)));
  std::vector<double> mine(static_cast<std::size_t>(iterations));
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = -warmup; i < iterations; ++i) {
    const double entry = MPI_Wtime();
    MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double exit = MPI_Wtime();
    if (i >= 0) mine[static_cast<std::size_t>(i)] = (exit - entry) * 1e6;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::vector<double> sum(mine.size());
  MPI_Reduce(mine.data(), sum.data(), iterations, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (double& value : sum) value /= ranks;
  return sum;
}

float* Allocate(long bytes, int value) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, static_cast<std::size_t>(bytes)) != 0) {
    std::fprintf(stderr, "plain_allreduce: no memory for %ld bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  memset(memory, value, static_cast<std::size_t>(bytes));
  return static_cast<float*>(memory);
}

void Report(long bytes, std::vector<double> averages) {
  double mean = 0;
  for (const double value : averages) mean += value / static_cast<double>(averages.size());
  std::sort(averages.begin(), averages.end());
  const std::size_t half = averages.size() / 2;
  std::printf("%ld %.3f %.3f\n", bytes, (averages[half - 1] + averages[half]) / 2, mean);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long first = argc > 1 ? std::atol(argv[1]) : 8;
  const long last = argc > 2 ? std::atol(argv[2]) : 64L << 20;
  float* send = Allocate(last, 1);
  float* recv = Allocate(last, 0);
  for (long bytes = std::max(first, 4L); bytes <= last; bytes *= 2) {
    std::vector<double> averages = Measure(bytes, send, recv, ranks);
    if (rank == 0) Report(bytes, std::move(averages));
  }
  free(send);
  free(recv);
  MPI_Finalize();
  return 0;
}
