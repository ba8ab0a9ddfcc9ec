// Runs trials by seed in threads, and makes the first that fails small: greedily, one thing at a
// time.
#include "watch/fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/clock.h"

namespace lockstep::watch::fuzz {
namespace {

// "innocent: rank 2 …" and "innocent: rank 1 …" are one kind.
std::string KindOf(const std::string& wrong) { return wrong.substr(0, wrong.find(':')); }

class Campaign {
 public:
  Campaign(const CampaignOptions& options, const Spoil& spoil) : options_(options), spoil_(spoil) {}

  CampaignResult Run() {
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
    CampaignResult own;
    while (!stop_) {
      const std::int64_t number = next_++;
      if (number >= options_.trials || (end_ns_ > 0 && MonotonicNs() >= end_ns_)) break;
      const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(number);
      const Assessment assessment = Assess(DrawProgram(seed), spoil_);
      ++own.trials;
      own.silent += assessment.found ? 0 : 1;
      own.hangs += assessment.hangs ? 1 : 0;
      own.unknown += assessment.unknown ? 1 : 0;
      if (assessment.wrong.empty()) continue;
      own.failed = seed;
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    result_.trials += own.trials;
    result_.silent += own.silent;
    result_.hangs += own.hangs;
    result_.unknown += own.unknown;
    if (own.failed) result_.failed = std::min(*own.failed, result_.failed.value_or(*own.failed));
  }

  const CampaignOptions& options_;
  const Spoil& spoil_;
  std::int64_t end_ns_ = 0;
  std::atomic<std::int64_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  CampaignResult result_;
};

bool Erring(const Program& program, std::size_t index) {
  return program.error != Error::kNone && program.at == index;
}

void WithoutSteps(const Program& program, std::vector<Program>& all) {
  for (std::size_t i = program.steps.size(); i-- > 0;) {
    if (Erring(program, i) || program.steps.size() == 1) continue;
    Program less = program;
    less.steps.erase(less.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (less.at > i) --less.at;
    all.push_back(std::move(less));
  }
}

// The last rank, where no step but a collective needs it.
void WithoutLastRank(const Program& program, std::vector<Program>& all) {
  const int last = program.ranks - 1;
  if (last < 2 || program.faulty == last || program.other == last) return;
  Program less = program;
  --less.ranks;
  for (std::vector<int>& members : less.comms) std::erase(members, last);
  for (Step& step : less.steps) {
    if (step.kind == Step::Kind::kCollective) {
      step.root = std::min(step.root, static_cast<int>(less.comms[step.comm].size()) - 1);
      if (less.comms[step.comm].size() < 2) return;
    } else if (TakesPart(program, step, last)) {
      return;
    }
  }
  all.push_back(std::move(less));
}

void Plainer(const Program& program, std::vector<Program>& all) {
  const auto with = [&](auto change) {
    Program plainer = program;
    if (change(plainer)) all.push_back(std::move(plainer));
  };
  with([](Program& p) { return std::exchange(p.completions, 0) != 0; });
  with([](Program& p) { return !std::exchange(p.lax, true); });
  for (const int all_or_none : {0, 4}) {
    with([&](Program& p) { return std::exchange(p.buffered, all_or_none) % 4 != 0; });
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    with([&](Program& p) { return std::exchange(p.steps[i].send, Call::kSend) != Call::kSend; });
    with([&](Program& p) { return std::exchange(p.steps[i].receive, Call::kRecv) != Call::kRecv; });
    with([&](Program& p) { return std::exchange(p.steps[i].any_tag, false); });
    with([&](Program& p) {
      const bool one = p.steps[i].kind == Step::Kind::kMessage;
      return std::exchange(p.steps[i].any_source, false) && one;
    });
    with([&](Program& p) {
      return std::exchange(p.steps[i].comm, 0) != 0 && p.steps[i].kind != Step::Kind::kCollective;
    });
  }
}

}  // namespace

CampaignResult RunCampaign(const CampaignOptions& options, const Spoil& spoil) {
  return Campaign(options, spoil).Run();
}

std::string Describe(const CampaignResult& result) {
  return fmt::format(
      "{} trials in {:.1f} s ({:.0f} a second): {} without a finding, {} where ranks hang, of "
      "these "
      "{} not to be known; {}",
      result.trials, result.seconds,
      static_cast<double>(result.trials) / std::max(result.seconds, 1e-9), result.silent,
      result.hangs, result.unknown, result.failed ? "a wrong verdict" : "no wrong verdict");
}

Program Shrink(const Program& program, const Spoil& spoil) {
  const std::string kind = KindOf(Assess(program, spoil).wrong);
  Program least = program;
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<Program> smaller;
    WithoutSteps(least, smaller);
    WithoutLastRank(least, smaller);
    Plainer(least, smaller);
    for (Program& next : smaller) {
      // Another schedule may show it.
      for (std::uint64_t schedule = 0; schedule < 4 && !progress; ++schedule) {
        Program tried = next;
        tried.seed += schedule << 32;
        progress = KindOf(Assess(tried, spoil).wrong) == kind;
        if (progress) least = std::move(tried);
      }
      if (progress) break;
    }
  }
  return least;
}

std::string DescribeFailure(std::uint64_t seed, const Spoil& spoil) {
  const Program first = DrawProgram(seed);
  const Program least = Shrink(first, spoil);
  return fmt::format("{}\n{} ranks and {} steps before it was shrunk\n{}",
                     Assess(least, spoil).wrong, first.ranks, first.steps.size(), Describe(least));
}

}  // namespace lockstep::watch::fuzz
