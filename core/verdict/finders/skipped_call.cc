// Ranks that ended their program in order although others call a collective that they never
// called: which of the two is wrong is what most of the communicator's ranks did not do.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/verdict/finders/find.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// What a rank waits in, or waited in when it failed.
const JournalEvent* CallOf(const RankView& view) {
  if (Failed(view)) return FirstErrorOf(view);
  return OwesProgress(view) ? view.open : nullptr;
}

// It left without having completed operation `sequence` of the group.
bool LeftBefore(const RankView& view, int group, std::uint64_t sequence) {
  if (!FinishedInOrder(view)) return false;
  const Track* track = view.On(group);
  return track == nullptr ? view.complete() : track->next <= sequence;
}

// Of one group: who calls what only a minority calls, while all others have left, and the furthest
// call of anybody else.
struct MembersCalls {
  std::vector<std::size_t> surplus;
  const JournalEvent* furthest_surplus = nullptr;
  const JournalEvent* furthest = nullptr;
};

MembersCalls CallsOn(const Situation& situation, std::size_t g,
                     const std::vector<std::size_t>& callers) {
  const Group& group = situation.groups[g];
  std::vector<std::uint64_t> left_at;  // first operation not completed, of those that left
  for (const std::size_t i : group.members) {
    const RankView& view = situation.views[i];
    if (!FinishedInOrder(view)) continue;
    const Track* track = view.On(static_cast<int>(g));
    if (track != nullptr || view.complete()) left_at.push_back(track == nullptr ? 0 : track->next);
  }
  std::ranges::sort(left_at);
  MembersCalls calls;
  for (const std::size_t i : callers) {
    const JournalEvent* const call = CallOf(situation.views[i]);
    const auto left = std::upper_bound(left_at.begin(), left_at.end(), call->sequence);
    const bool surplus = group.aligned && 2 * (left - left_at.begin()) >
                                              static_cast<std::ptrdiff_t>(group.members.size());
    if (surplus) calls.surplus.push_back(i);
    const JournalEvent*& furthest = surplus ? calls.furthest_surplus : calls.furthest;
    if (furthest == nullptr || call->sequence > furthest->sequence) furthest = call;
  }
  return calls;
}

std::vector<MembersCalls> CallsOf(const Situation& situation) {
  std::vector<std::vector<std::size_t>> callers(situation.groups.size());
  for (std::size_t i = 0; i < situation.views.size(); ++i) {
    const RankView& view = situation.views[i];
    const JournalEvent* const call = CallOf(view);
    const Track* const track = call == nullptr ? nullptr : view.TrackOf(*call);
    if (track == nullptr || track->group == kUnknownGroup) continue;
    callers[static_cast<std::size_t>(track->group)].push_back(i);
  }
  std::vector<MembersCalls> calls;
  for (std::size_t g = 0; g < callers.size(); ++g) {
    calls.push_back(CallsOn(situation, g, callers[g]));
  }
  return calls;
}

Headline HeadlineOf(const Views& callers, const MembersCalls& calls, const Views& left) {
  return Headline("{} {} {}", Who(callers), callers.size() == 1 ? "calls" : "call",
                  NameOfInvocation(*calls.furthest_surplus))
      .Add(", which {} never called", FormatRanks(RanksOf(left)))
      .Add("; they ended in order");
}

}  // namespace

std::vector<bool> FindMissed(const Situation& situation) {
  std::vector<bool> missed(situation.views.size());
  const std::vector<MembersCalls> calls = CallsOf(situation);
  for (std::size_t g = 0; g < calls.size(); ++g) {
    if (calls[g].furthest == nullptr) continue;
    for (const std::size_t i : situation.groups[g].members) {
      missed[i] = missed[i] ||
                  LeftBefore(situation.views[i], static_cast<int>(g), calls[g].furthest->sequence);
    }
  }
  return missed;
}

std::vector<Finding> FindSurplus(const Situation& situation) {
  std::vector<Finding> findings;
  const std::vector<MembersCalls> all = CallsOf(situation);
  for (std::size_t g = 0; g < all.size(); ++g) {
    const MembersCalls& calls = all[g];
    if (calls.surplus.empty()) continue;
    Finding finding{.cause = Cause::kCollectiveMismatch, .proved = true};
    const Views callers = ViewsAt(situation.views, calls.surplus);
    finding.culprits = RanksOf(callers);
    finding.operation = OperationIn(calls.furthest_surplus);
    Views left = ViewsAt(situation.views, situation.groups[g].members);
    std::erase_if(left, [&](const RankView* view) {
      return !LeftBefore(*view, static_cast<int>(g), calls.furthest_surplus->sequence);
    });
    finding.message =
        fmt::format("{} {} {}, which {} never called: they ended their program in order",
                    FormatRanks(finding.culprits), Verb(finding.culprits, "calls", "call"),
                    DescribeInvocation(*calls.furthest_surplus), FormatRanks(RanksOf(left)));
    finding.headline = HeadlineOf(callers, calls, left);
    finding.remedy = fmt::format(
        "Compare what {} and the others call: it is one collective more than the others' program "
        "has, or they ended too early.",
        FormatRanks(finding.culprits));
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace lockstep::verdict::finders
