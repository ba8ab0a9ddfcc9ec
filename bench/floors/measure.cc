// One thread a local rank goes through the same list of steps. Between steps all meet, and the last
// to arrive decides whether there is time for another.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <thread>

#include "bench/floors/arrays.h"
#include "bench/floors/floors.h"
#include "bench/floors/kernels.h"
#include "bench/floors/ping_pong.h"
#include "core/base/deadline.h"

namespace lockstep::bench::floors {
namespace {

constexpr std::int64_t kArrayBytes[] = {8 << 10, 64 << 10, 512 << 10, 4 << 20, 16 << 20};
constexpr std::int64_t kPassNs = 200'000;      // a pass of small arrays repeats them for so long
constexpr int kPasses = 3;                     // the best counts
constexpr std::int64_t kLargeBytes = 4 << 20;  // from here on stores that bypass the caches may pay
constexpr int kLargePasses = 2;
constexpr int kMostAlone = 4;  // ranks that are measured alone
constexpr int kMostPairs = 16;
constexpr double kPairSeconds = 0.05;  // at most, when two ranks share a processor after all
// With many ranks on a host, or more than processors, the largest arrays would take too much memory
// and time; the next smaller ones are as fast or faster, so a bound stays a bound.
constexpr std::size_t kManyRanks = 16;

using Cpus = std::vector<std::vector<int>>;

// Processor time of this thread: while another program has the processor, no time passes.
double ThreadNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// 1e9 bytes a second: the best kernel's best pass.
double BandwidthOf(const Arrays& arrays, const std::vector<ArrayKernel>& kernels,
                   std::int64_t bytes) {
  double best = 0;
  const bool large = bytes >= kLargeBytes;
  for (const ArrayKernel kernel : kernels) {
    if (!large && kernel != kernels.front()) break;
    for (int pass = 0; pass < (large ? kLargePasses : kPasses); ++pass) {
      const Deadline enough = Deadline::AfterNs(kPassNs);
      const double start = ThreadNs();
      std::int64_t done = 0;
      do {
        // Between two looks at the clock at least 256 KiB, so that the clock costs nothing.
        for (std::int64_t some = 0; some < (256 << 10); some += bytes) {
          arrays.Run(kernel, bytes);
          done += bytes;
        }
      } while (!enough.Passed());
      best = std::max(best, static_cast<double>(done) / (ThreadNs() - start));
    }
  }
  return best;
}

class Measurement {
 public:
  Measurement(const Cpus& cpus, double budget_seconds)
      : cpus_(cpus), deadline_(Deadline::AfterSeconds(budget_seconds)) {
    const bool crowded = cpus.size() > kManyRanks || !EachHasAProcessor(cpus);
    for (const std::int64_t bytes : kArrayBytes) {
      if (crowded && bytes == std::end(kArrayBytes)[-1]) continue;
      floors_.bandwidths.push_back({.bytes = bytes});
    }
  }

  HostFloors Run() {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < cpus_.size(); ++rank) {
      threads.emplace_back([this, rank] { Thread(rank); });
    }
    for (std::thread& thread : threads) thread.join();
    return failed_ ? HostFloors{} : floors_;
  }

 private:
  // All threads reach this; false for all of them when one failed or the time is up.
  bool Meet() {
    barrier_.arrive_and_wait();
    return go_on_;
  }

  void Thread(std::size_t rank) {
    if (!BindThisThread(cpus_[rank])) failed_ = true;
    if (!Meet()) return;
    Latency(rank);
    const Arrays arrays(floors_.bandwidths.back().bytes);
    if (!arrays.ok()) failed_ = true;
    if (!Meet()) return;
    Together(arrays);
    Alone(rank, arrays);
  }

  void Latency(std::size_t rank) {
    const std::size_t pairs = std::min<std::size_t>(cpus_.size() - 1, kMostPairs);
    if (!EachHasAProcessor(cpus_)) return;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      if (!Meet()) return;
      const Deadline deadline = Deadline::AfterSeconds(kPairSeconds).Earlier(deadline_);
      if (rank == pair + 1) ping_pongs_[pair].Return(deadline);
      if (rank != pair) continue;
      const double ns = ping_pongs_[pair].Serve(deadline);
      const std::lock_guard<std::mutex> lock(mutex_);
      floors_.line_round_trip_ns = std::fmax(floors_.line_round_trip_ns, ns);
      floors_.line_round_trip_fastest_ns = std::fmin(floors_.line_round_trip_fastest_ns, ns);
    }
  }

  void Together(const Arrays& arrays) {
    for (std::size_t size = 0; size < floors_.bandwidths.size(); ++size) {
      const std::int64_t bytes = floors_.bandwidths[size].bytes;
      if (!Meet()) return;
      Keep(&Bandwidth::copy_gbps_together, size, BandwidthOf(arrays, CopyKernels(), bytes));
      if (!Meet()) return;
      Keep(&Bandwidth::reduce_gbps_together, size, BandwidthOf(arrays, ReduceKernels(), bytes));
    }
  }

  void Alone(std::size_t rank, const Arrays& arrays) {
    const std::size_t ranks = std::min<std::size_t>(cpus_.size(), kMostAlone);
    for (std::size_t turn = 0; turn < ranks; ++turn) {
      for (std::size_t size = 0; size < floors_.bandwidths.size(); ++size) {
        if (!Meet()) return;
        if (rank != turn) continue;
        const std::int64_t bytes = floors_.bandwidths[size].bytes;
        Keep(&Bandwidth::copy_gbps_alone, size, BandwidthOf(arrays, CopyKernels(), bytes));
        Keep(&Bandwidth::reduce_gbps_alone, size, BandwidthOf(arrays, ReduceKernels(), bytes));
      }
    }
  }

  // Keeps the minimum over ranks.
  void Keep(double Bandwidth::*field, std::size_t size, double gbps) {
    const std::lock_guard<std::mutex> lock(mutex_);
    double& kept = floors_.bandwidths[size].*field;
    kept = std::fmin(kept, gbps);
  }

  const Cpus& cpus_;
  const Deadline deadline_;
  struct Decide {
    Measurement* measurement;
    void operator()() noexcept {
      measurement->go_on_ = !measurement->failed_ && !measurement->deadline_.Passed();
    }
  };
  bool go_on_ = true;  // written only while all threads wait
  std::atomic<bool> failed_ = false;
  std::barrier<Decide> barrier_{static_cast<std::ptrdiff_t>(cpus_.size()), Decide{this}};
  std::mutex mutex_;
  HostFloors floors_;
  PingPong ping_pongs_[kMostPairs];
};

}  // namespace

HostFloors MeasureFloors(const std::vector<std::vector<int>>& cpus_of_local_ranks,
                         double budget_seconds) {
  if (cpus_of_local_ranks.empty()) return {};
  return Measurement(cpus_of_local_ranks, budget_seconds).Run();
}

}  // namespace lockstep::bench::floors
