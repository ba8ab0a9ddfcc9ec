// Runs trials by seed, assesses each, and shrinks the first that is wrong. The sum of all is one
// table.
#include "stress/fuzz/campaign.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "core/base/clock.h"
#include "stress/fuzz/shrink.h"

namespace lockstep::stress::fuzz {
namespace {

// "culprit: not rank 2, …" and "culprit: not rank 1, …" are one kind.
std::string KindOf(const std::string& why) { return why.substr(0, why.find_first_of(":,")); }

Assessment Assess(const FuzzTrial& trial, const Judging& judge) {
  return AssessTrial(trial, Simulate(trial), judge);
}

class Campaign {
 public:
  Campaign(const FuzzOptions& options, const Judging& judge) : options_(options), judge_(judge) {}

  FuzzResult Run() {
    const std::int64_t begin = MonotonicNs();
    end_ns_ = options_.seconds > 0 ? begin + static_cast<std::int64_t>(options_.seconds * 1e9) : 0;
    std::vector<std::thread> threads;
    for (int job = 1; job < options_.jobs; ++job) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    result_.seconds = static_cast<double>(MonotonicNs() - begin) / 1e9;
    return result_;
  }

 private:
  void Work() {
    FuzzResult own;
    while (!stop_) {
      const std::int64_t number = next_++;
      if (number >= options_.trials || (end_ns_ > 0 && MonotonicNs() >= end_ns_)) break;
      const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(number);
      const comm::sim::SimRules rules = options_.rules[seed % options_.rules.size()];
      const Assessment found = Assess(DrawTrial(seed, rules), judge_);
      ++own.trials;
      own.trouble += found.trouble ? 1 : 0;
      own.silent += found.silent ? 1 : 0;
      own.corrupt += found.corrupt ? 1 : 0;
      own.unknown += found.unknown ? 1 : 0;
      if (found.wrong.empty()) continue;
      own.failure = {seed, rules, found.wrong};
      stop_ = true;
    }
    Add(own);
  }

  void Add(const FuzzResult& own) {
    const std::lock_guard lock(mutex_);
    result_.trials += own.trials;
    result_.trouble += own.trouble;
    result_.silent += own.silent;
    result_.corrupt += own.corrupt;
    result_.unknown += own.unknown;
    if (!own.failure) return;
    if (!result_.failure || own.failure->seed < result_.failure->seed) {
      result_.failure = own.failure;
    }
  }

  const FuzzOptions& options_;
  const Judging& judge_;
  std::int64_t end_ns_ = 0;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  FuzzResult result_;
};

}  // namespace

FuzzResult RunCampaign(const FuzzOptions& options, const Judging& judge) {
  return Campaign(options, judge).Run();
}

std::string Describe(const FuzzResult& result) {
  const auto share = [&](std::int64_t part, std::int64_t all) {
    return all == 0 ? 0.0 : 100 * static_cast<double>(part) / static_cast<double>(all);
  };
  return fmt::format(
      "{} trials in {:.1f} s ({:.0f} a second): {} wrong verdict\n"
      "  {} with ranks that hang or fail, of these {} unknown ({:.3f} %)\n"
      "  {} where a wrong call passed, {} of them with wrong data\n",
      result.trials, result.seconds,
      static_cast<double>(result.trials) / std::max(result.seconds, 1e-9),
      result.failure ? "a" : "no", result.trouble, result.unknown,
      share(result.unknown, result.trouble), result.silent, result.corrupt);
}

std::string DescribeFailure(const FuzzFailure& failure, const Judging& judge) {
  const FuzzTrial first = DrawTrial(failure.seed, failure.rules);
  const std::string kind = KindOf(failure.why);
  const FuzzTrial least = Shrink(
      first, [&](const FuzzTrial& trial) { return KindOf(Assess(trial, judge).wrong) == kind; });
  return fmt::format("# {}\n# {} ranks and {} steps before it was shrunk; streams: {}\n{}",
                     Assess(least, judge).wrong, first.ranks, first.steps.size(),
                     least.streams == StreamUse::kInline ? "one, inline"
                     : least.streams == StreamUse::kFifo ? "one beside the caller"
                                                         : "two beside the caller",
                     ScenarioText(least));
}

}  // namespace lockstep::stress::fuzz
