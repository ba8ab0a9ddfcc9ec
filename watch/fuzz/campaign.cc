// Makes a program whose verdict is wrong small: greedily, one thing at a time.
#include "watch/fuzz/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/seeded_trials.h"

namespace lockstep::watch::fuzz {
namespace {

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

Counts& Counts::operator+=(const Assessment& assessment) {
  return *this += Counts{.trials = 1,
                         .silent = assessment.found ? 0 : 1,
                         .hangs = assessment.hangs ? 1 : 0,
                         .unknown = assessment.unknown ? 1 : 0};
}

Counts& Counts::operator+=(const Counts& other) {
  trials += other.trials;
  silent += other.silent;
  hangs += other.hangs;
  unknown += other.unknown;
  return *this;
}

std::string Describe(const Counts& counts) {
  return fmt::format("{} without a finding, {} where ranks hang, of these {} not to be known",
                     counts.silent, counts.hangs, counts.unknown);
}

Program Shrink(const Program& program, const Spoil& spoil) {
  const std::string kind = KindOfFailure(Assess(program, spoil).wrong);
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
        progress = KindOfFailure(Assess(tried, spoil).wrong) == kind;
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
