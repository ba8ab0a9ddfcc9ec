// A rank that sleeps in a collective while others are awake stalls them. It counts as such only if
// it was seen to go on: one that never does is judged as a hang.
#include "bench/measure/stalls.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/journal/journal.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::bench::measure {
namespace {

constexpr double kStallSeconds = 0.5;  // a rank that sleeps so long in a collective is noted
constexpr std::size_t kMostStalls = 100;

// It runs, and another call than the one that it slept in is its newest.
bool WentOn(const Stall& stall, const verdict::RankEvidence& rank) {
  if (rank.state != verdict::ProcessState::kRunning || !rank.error.empty()) return false;
  const std::optional<journal::JournalEvent> open = journal::OpenOperation(rank.journal);
  const bool newer = !rank.journal.events.empty() && rank.journal.events.back().index > stall.event;
  return newer && (!open || open->index != stall.event);
}

}  // namespace

void StallWatch::Look(const std::vector<verdict::RankEvidence>& all, int repetition) {
  const auto asleep = std::count_if(all.begin(), all.end(), [](const auto& e) { return e.asleep; });
  if (asleep == 0 || asleep == static_cast<std::ptrdiff_t>(all.size())) return;
  for (const verdict::RankEvidence& rank : all) {
    const std::optional<journal::JournalEvent> open = journal::OpenOperation(rank.journal);
    if (!rank.asleep || rank.seconds_silent < kStallSeconds || !open) continue;
    const bool known = std::any_of(asleep_.begin(), asleep_.end(), [&](const Stall& stall) {
      return stall.rank == rank.rank && stall.event == open->index;
    });
    if (known || asleep_.size() + stalls_.size() >= kMostStalls) continue;
    asleep_.push_back(
        {rank.rank, open->case_index, repetition, open->index, verdict::DescribeInvocation(*open),
         rank.system,
         verdict::Headline(fmt::format("{} slept in {} while the others waited",
                                       verdict::Who({&rank}), verdict::NameOfInvocation(*open)))});
  }
}

void StallWatch::RoundDone() {
  stalls_.insert(stalls_.end(), std::make_move_iterator(asleep_.begin()),
                 std::make_move_iterator(asleep_.end()));
  asleep_.clear();
}

void StallWatch::Interrupted(const std::vector<verdict::RankEvidence>& all) {
  std::erase_if(asleep_, [&](const Stall& stall) {
    return std::none_of(all.begin(), all.end(), [&](const verdict::RankEvidence& rank) {
      return rank.rank == stall.rank && WentOn(stall, rank);
    });
  });
  RoundDone();
}

}  // namespace lockstep::bench::measure
