// Random trials by seed, in threads, until the first that fails: what fuzzers share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/argument_parser.h"
#include "core/base/clock.h"

namespace lockstep {

struct TrialOptions {
  std::uint64_t seed = 1;  // trial i has seed + i
  std::int64_t trials = 10'000;
  double seconds = 0;  // 0: no limit but the trials
  int jobs = 1;        // threads
};

inline void AddTrialOptions(ArgumentParser& parser, TrialOptions& options) {
  parser.Add("--trials=COUNT", options.trials, "Number of random trials")
      .Between(1, 2'000'000'000)
      .ShowDefault();
  parser.Add("--seed=SEED", options.seed, "Seed of all that is random (trial i has this one + i)")
      .ShowDefault();
  parser.Add("--time-budget=TIME", options.seconds, "Time for the whole run (0: no limit)")
      .BetweenReals(0.0, 86'400.0)
      .ShowDefault();
  parser.Add("--jobs=COUNT", options.jobs, "Threads that run trials").Between(1, 256).ShowDefault();
}

// What a wrong verdict is called: "culprit: not rank 2, ..." and "culprit: not rank 1, ..." are one
// kind, which a smaller program keeps.
inline std::string KindOfFailure(const std::string& wrong) {
  return wrong.substr(0, wrong.find_first_of(":,"));
}

// Calls trial(seed, sum), which adds what came out to the sum of its thread, and returns whether
// all is well: else no more are begun. The sums are added up by +=. Sum has `seconds`.
template <typename Sum, typename Trial>
Sum RunTrials(const TrialOptions& options, const Trial& trial) {
  const std::int64_t begin = MonotonicNs();
  const auto end_ns = static_cast<std::int64_t>(options.seconds * 1e9);
  std::atomic<std::int64_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex mutex;
  Sum all;
  const auto work = [&] {
    Sum own;
    while (!stop) {
      const std::int64_t number = next++;
      if (number >= options.trials || (end_ns > 0 && MonotonicNs() - begin >= end_ns)) break;
      if (!trial(options.seed + static_cast<std::uint64_t>(number), own)) stop = true;
    }
    const std::lock_guard lock(mutex);
    all += own;
  };
  std::vector<std::thread> threads;
  for (int job = 1; job < options.jobs; ++job) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  all.seconds = SecondsSince(begin);
  return all;
}

// What trials came to. Counts are added up, and so is what a trial was: `counts += assessment`.
template <typename Counts>
struct Campaign {
  Counts counts;
  double seconds = 0;
  std::optional<std::uint64_t> failed;  // of those found, the lowest seed

  Campaign& operator+=(const Campaign& other) {
    counts += other.counts;
    if (other.failed) failed = std::min(*other.failed, failed.value_or(*other.failed));
    return *this;
  }
};

// assess(seed) says what the trial was, and in `wrong` what is wrong with its verdict, or "". Stops
// at the first wrong verdict.
template <typename Counts, typename Assess>
Campaign<Counts> RunCampaign(const TrialOptions& options, const Assess& assess) {
  return RunTrials<Campaign<Counts>>(options, [&](std::uint64_t seed, Campaign<Counts>& sum) {
    const auto assessment = assess(seed);
    sum.counts += assessment;
    if (!assessment.wrong.empty()) sum.failed = seed;
    return assessment.wrong.empty();
  });
}

}  // namespace lockstep
