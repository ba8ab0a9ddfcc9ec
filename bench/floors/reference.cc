// All threads go through the same list of steps, and meet before and after each. Between two
// measurements they sleep in a barrier. They take no signal: those are the agent's.
#include "bench/floors/reference.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bench/floors/arrays.h"
#include "bench/floors/kernels.h"
#include "bench/floors/ping_pong.h"
#include "bench/floors/spin.h"
#include "core/base/clock.h"
#include "core/base/deadline.h"

namespace lockstep::bench::floors {
namespace {

constexpr std::size_t kMostRanks = 16;
constexpr std::size_t kReferencePairs = 4;
constexpr int kReferenceBatches = 20;   // of a cache line's round trips
constexpr double kMostSeconds = 0.02;   // when threads share a processor after all
constexpr double kLargeSeconds = 0.06;  // likewise, with arrays larger than 4 MiB
constexpr double kLineSeconds = 0.005;  // likewise, of one pair
constexpr int kReferencePasses[] = {8, 6, 3, 2, 2, 2};  // of each size of array; the best counts

static_assert(std::size(kReferencePasses) == kHandoverBytes.size());

// Threads that take no signal.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// Of kHandoverBytes: those that FloorNs looks at for messages of that size.
std::size_t ClassesFor(std::int64_t largest_bytes) {
  std::size_t classes = 1;
  while (classes < kHandoverBytes.size() && kHandoverBytes[classes] <= largest_bytes / 2) ++classes;
  return classes;
}

}  // namespace

class Reference::Threads {
 public:
  Threads(std::vector<std::vector<int>> cpus, std::size_t classes)
      : cpus_(std::move(cpus)),
        classes_(classes),
        arrays_(cpus_.size()),
        begin_(static_cast<std::ptrdiff_t>(cpus_.size()) + 1),
        end_(static_cast<std::ptrdiff_t>(cpus_.size()) + 1),
        meeting_(cpus_.size()) {
    const SignalsBlocked blocked;
    for (std::size_t rank = 0; rank < cpus_.size(); ++rank) {
      threads_.emplace_back([this, rank] { Thread(rank); });
    }
    end_.arrive_and_wait();  // the arrays are there
  }

  ~Threads() {
    over_ = true;
    begin_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }

  Crossing Measure() {
    if (failed_) return {};
    found_ = {};
    meeting_.Reset();
    ping_pongs_ = std::vector<PingPong>(std::min(cpus_.size() - 1, kReferencePairs));
    const bool large = kHandoverBytes[classes_ - 1] > 4 << 20;
    deadline_ = Deadline::AfterSeconds(large ? kLargeSeconds : kMostSeconds);
    begin_.arrive_and_wait();
    end_.arrive_and_wait();
    return found_;
  }

 private:
  void Thread(std::size_t rank) {
    arrays_[rank].emplace(kHandoverBytes[classes_ - 1]);
    if (!BindThisThread(cpus_[rank]) || !arrays_[rank]->ok()) failed_ = true;
    end_.arrive_and_wait();
    for (;;) {
      begin_.arrive_and_wait();
      if (over_) return;
      bool in_time = Lines(rank);
      for (std::size_t size = 0; in_time && size < classes_; ++size) in_time = Handover(rank, size);
      end_.arrive_and_wait();
    }
  }

  // False: the time is up.
  bool Lines(std::size_t rank) {
    for (std::size_t pair = 0; pair < ping_pongs_.size(); ++pair) {
      if (!meeting_.Meet(deadline_)) return false;
      const Deadline deadline = Deadline::AfterSeconds(kLineSeconds).Earlier(deadline_);
      if (rank == pair + 1) ping_pongs_[pair].Return(deadline);
      if (rank != pair) continue;
      const double ns = ping_pongs_[pair].Serve(deadline, kReferenceBatches);
      const std::lock_guard<std::mutex> lock(mutex_);
      found_.line_round_trip_ns = std::fmin(found_.line_round_trip_ns, ns);
    }
    return true;
  }

  // Each reads what its neighbour has just written, all at once.
  bool Handover(std::size_t rank, std::size_t size) {
    const std::int64_t bytes = kHandoverBytes[size];
    const Arrays& others = *arrays_[(rank + 1) % arrays_.size()];
    const ArrayKernel copy = CopyKernels().front();
    double best = 0;
    for (int pass = 0; pass < kReferencePasses[size]; ++pass) {
      arrays_[rank]->Write(bytes);
      if (!meeting_.Meet(deadline_)) return false;
      const std::int64_t start = MonotonicNs();
      arrays_[rank]->CopyFrom(others, copy, bytes);
      const std::int64_t ns = std::max<std::int64_t>(MonotonicNs() - start, 1);
      best = std::max(best, static_cast<double>(bytes) / static_cast<double>(ns));
      if (!meeting_.Meet(deadline_)) return false;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    found_.handover_gbps[size] = std::fmin(found_.handover_gbps[size], best);
    return true;
  }

  const std::vector<std::vector<int>> cpus_;
  const std::size_t classes_;
  std::vector<std::optional<Arrays>> arrays_;  // a rank
  std::barrier<> begin_;                       // of the threads and the caller
  std::barrier<> end_;
  SpinBarrier meeting_;  // of the threads
  std::vector<PingPong> ping_pongs_;
  Deadline deadline_ = Deadline::AfterNs(0);
  std::atomic<bool> failed_ = false;
  bool over_ = false;  // written only while all threads wait
  std::mutex mutex_;
  Crossing found_;
  std::vector<std::thread> threads_;
};

Reference::Reference(std::vector<std::vector<int>> cpus_of_local_ranks,
                     std::int64_t largest_bytes) {
  const std::size_t ranks = cpus_of_local_ranks.size();
  if (ranks < 2 || ranks > kMostRanks || !EachHasAProcessor(cpus_of_local_ranks)) return;
  threads_ = std::make_unique<Threads>(std::move(cpus_of_local_ranks), ClassesFor(largest_bytes));
}

Reference::~Reference() = default;

Crossing Reference::Measure() { return threads_ == nullptr ? Crossing{} : threads_->Measure(); }

}  // namespace lockstep::bench::floors
