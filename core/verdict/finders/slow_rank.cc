// Slow ranks: who makes the others wait although everything goes on.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/verdict/finders/find.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

constexpr double kTimesMedian = 2;
constexpr double kShareOfPeriod = 0.2;
// Fewer say nothing of a habit.
constexpr std::size_t kFewestIntervals = 8;

// What is seldom is no habit, either: of so many intervals the longest one does not count.
constexpr std::size_t kSeldom = 16;

// From the end of a collective to the start of the next one, and to its end.
struct Interval {
  Ticks own = 0;
  Ticks period = 0;
};

struct Pace {
  std::size_t intervals = 0;
  double own_ticks = 0;  // means
  double period_ticks = 0;
  double habit_ticks = 0;  // three of four own times are as long, or longer
};

// A call may be enqueued before the one ahead of it ends: then the rank does nothing in between.
std::vector<Interval> IntervalsOf(const RankEvidence& evidence) {
  using Call = std::tuple<collective::Collective, std::int32_t, std::uint64_t>;
  std::vector<Interval> intervals;
  std::map<Call, Ticks> enqueued;
  Ticks left = 0;
  for (const JournalEvent& event : evidence.journal.events) {
    if (event.kind == EventKind::kCase || event.kind == EventKind::kIdle) left = 0;
    // A rank that joined shadows the others' calls: it has no inputs to work on.
    if (event.phase == Phase::kJoinExit) {
      left = 0;
      continue;
    }
    const Call call = {event.collective, event.root, event.sequence};
    if (event.kind == EventKind::kEnqueue) enqueued[call] = event.ticks;
    if (event.kind != EventKind::kEnd) continue;
    const auto begun = enqueued.extract(call);
    if (left != 0 && !begun.empty()) {
      const Ticks own = begun.mapped() > left ? begun.mapped() - left : 0;
      if (own < event.ticks - left) intervals.push_back({own, event.ticks - left});
    }
    left = event.ticks;
  }
  return intervals;
}

// Where ranks wait for each other in smaller groups, too, time between two collectives of all ranks
// is not their own.
bool HasOtherCommunicators(const RankEvidence& evidence) {
  return std::ranges::any_of(evidence.journal.events, [](const JournalEvent& event) {
    return event.communicator != kWorld && journal::IsOfCall(event.kind);
  });
}

Pace PaceOf(const RankEvidence& evidence) {
  std::vector<Interval> intervals = IntervalsOf(evidence);
  Pace pace{.intervals = intervals.size()};
  if (pace.intervals < kFewestIntervals) return pace;
  std::ranges::sort(intervals, {}, &Interval::own);
  intervals.resize(intervals.size() - (1 + (intervals.size() - 1) / kSeldom));
  pace.habit_ticks = static_cast<double>(intervals[intervals.size() / 4].own);
  const auto count = static_cast<double>(intervals.size());
  for (const Interval& interval : intervals) {
    pace.own_ticks += static_cast<double>(interval.own) / count;
    pace.period_ticks += static_cast<double>(interval.period) / count;
  }
  return pace;
}

}  // namespace

std::vector<Finding> FindSlowRanks(const std::vector<RankEvidence>& evidence) {
  if (std::ranges::any_of(evidence, HasOtherCommunicators)) return {};
  std::vector<std::pair<const RankEvidence*, Pace>> paces;
  std::vector<double> own;
  for (const RankEvidence& rank : evidence) {
    const Pace pace = PaceOf(rank);
    if (pace.intervals < kFewestIntervals) continue;
    paces.emplace_back(&rank, pace);
    own.push_back(pace.own_ticks);
  }
  if (own.size() < 2) return {};
  // The lower of the two in the middle: of two ranks one can be the slow one.
  const auto middle = own.begin() + static_cast<std::ptrdiff_t>((own.size() - 1) / 2);
  std::nth_element(own.begin(), middle, own.end());
  const double median = *middle;
  Finding finding;
  std::vector<const RankEvidence*> slow;
  const Pace* worst = nullptr;
  int worst_rank = 0;
  for (const auto& [rank, pace] : paces) {
    const double excess = pace.own_ticks - median;
    if (pace.own_ticks <= kTimesMedian * median || excess < kShareOfPeriod * pace.period_ticks) {
      continue;
    }
    slow.push_back(rank);
    finding.culprits.push_back(rank->rank);
    if (worst != nullptr && pace.own_ticks <= worst->own_ticks) continue;
    worst = &pace;
    worst_rank = rank->rank;
  }
  if (worst == nullptr) return {};
  finding.cause = Cause::kSlowRank;
  // A rank that is stopped, or kept from its processor, at times is as slow on average.
  finding.proved = worst->habit_ticks > kTimesMedian * median;
  finding.message = fmt::format(
      "{} {} the others wait: between two collectives rank {} works {:.1f} times as long as the "
      "median rank, {:.0f} % of its period",
      FormatRanks(finding.culprits), Verb(finding.culprits, "makes", "make"), worst_rank,
      worst->own_ticks / std::max(median, 1.0), 100 * worst->own_ticks / worst->period_ticks);
  finding.headline = Headline("{} {} the others wait: between two collectives", Who(slow),
                              Verb(finding.culprits, "makes", "make"));
  finding.headline.Add(" {} works {:.1f} times as long as usual",
                       slow.size() == 1 ? "it" : fmt::format("rank {}", worst_rank),
                       worst->own_ticks / std::max(median, 1.0));
  finding.remedy = fmt::format(
      "See what rank {} does between collectives that the others do not: loading, decoding, "
      "logging or a slower processor.",
      worst_rank);
  return {finding};
}

}  // namespace lockstep::verdict::finders
