// Ranks that ended their program in order although others call a collective that they never
// called: which of the two is wrong is what most of the communicator's ranks did not do. A rank
// that waits for ever for such a caller, and has not come to the call, does not call it either.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/verdict/finders/find.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/semantics.h"
#include "core/verdict/stuck.h"
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

// Of one group: who calls what only a minority calls, while most have left or wait for a caller,
// and the furthest call of anybody else.
struct MembersCalls {
  std::vector<std::size_t> surplus;
  std::vector<int> behind;  // ranks that wait for a caller, and have not come to its call
  const JournalEvent* furthest_surplus = nullptr;
  const JournalEvent* furthest = nullptr;
};

// It is in a call that takes all members, and never goes on.
bool WaitsForAll(const Situation& situation, const Stuck& stuck, int group, std::size_t i) {
  const RankView& view = situation.views[i];
  if (!stuck.ranks[i] || !view.waits_in(group)) return false;
  const bool is_root = RootIn(situation, group, view.open->root) == i;
  const auto size = static_cast<int>(situation.GroupAt(group).members.size());
  return NeedsOf(situation.semantics, OperationOf(*view.open), is_root, size) == Needs::kAll;
}

// By view: the caller that it waits for elsewhere, itself or through others; or nothing. Those two
// hold each other whoever left: it comes to no call before the caller goes on.
std::map<std::size_t, std::optional<std::size_t>> CallersAhead(const Situation& situation,
                                                               const Stuck& stuck, int group) {
  std::map<std::size_t, std::optional<std::size_t>> ahead;
  for (const std::size_t member : situation.GroupAt(group).members) {
    std::vector<std::size_t> path;
    std::size_t at = member;
    while (stuck.ranks[at] && !situation.views[at].waits_in(group) &&
           ahead.try_emplace(at).second) {
      path.push_back(at);
      at = static_cast<std::size_t>(stuck.waits_for[at]);
    }
    const auto known = ahead.find(at);
    std::optional<std::size_t> caller = known == ahead.end() ? std::nullopt : known->second;
    if (WaitsForAll(situation, stuck, group, at)) caller = at;
    for (const std::size_t i : path) ahead[i] = caller;
  }
  return ahead;
}

// Of each member that left, or waits for a caller: the first operation that it never calls. They
// are none where none left.
std::vector<std::uint64_t> NeverCalled(const Situation& situation, const Stuck& stuck,
                                       std::size_t g, MembersCalls& calls) {
  const auto group = static_cast<int>(g);
  const auto& members = situation.groups[g].members;
  std::vector<std::uint64_t> never;
  for (const std::size_t i : members) {
    const RankView& view = situation.views[i];
    if (!FinishedInOrder(view)) continue;
    const Track* track = view.On(group);
    if (track != nullptr || view.complete()) never.push_back(track == nullptr ? 0 : track->next);
  }
  std::ranges::sort(never);
  if (never.empty() || !situation.one_stream) return never;
  const std::uint64_t left = never.front();
  const auto ahead = CallersAhead(situation, stuck, group);
  for (const std::size_t i : members) {
    const auto found = ahead.find(i);
    if (found == ahead.end() || !found->second) continue;
    const std::uint64_t call = situation.views[*found->second].open->sequence;
    const Track* track = situation.views[i].On(group);
    const bool came = track == nullptr ? !situation.views[i].complete() : track->queued > call;
    if (came || call < left) continue;
    never.push_back(call);
    calls.behind.push_back(situation.views[i].rank());
  }
  std::ranges::sort(never);
  return never;
}

MembersCalls CallsOn(const Situation& situation, const Stuck& stuck, std::size_t g,
                     const std::vector<std::size_t>& callers) {
  MembersCalls calls;
  if (callers.empty()) return calls;
  const Group& group = situation.groups[g];
  const std::vector<std::uint64_t> never = NeverCalled(situation, stuck, g, calls);
  for (const std::size_t i : callers) {
    const JournalEvent* const call = CallOf(situation.views[i]);
    const auto others = std::upper_bound(never.begin(), never.end(), call->sequence);
    const bool surplus = group.aligned && 2 * (others - never.begin()) >
                                              static_cast<std::ptrdiff_t>(group.members.size());
    if (surplus) calls.surplus.push_back(i);
    const JournalEvent*& furthest = surplus ? calls.furthest_surplus : calls.furthest;
    if (furthest == nullptr || call->sequence > furthest->sequence) furthest = call;
  }
  return calls;
}

std::vector<MembersCalls> CallsOf(const Situation& situation, const Stuck& stuck) {
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
    calls.push_back(CallsOn(situation, stuck, g, callers[g]));
  }
  return calls;
}

Headline HeadlineOf(const Views& callers, const MembersCalls& calls, const Views& left) {
  return Headline("{} {} {}", Who(callers), callers.size() == 1 ? "calls" : "call",
                  NameOfInvocation(*calls.furthest_surplus))
      .Add(", which {} never called", FormatRanks(RanksOf(left)))
      .Add("; {} ended in order", left.size() == 1 ? "it" : "they");
}

}  // namespace

std::vector<bool> FindMissed(const Situation& situation, const Stuck& stuck) {
  std::vector<bool> missed(situation.views.size());
  const std::vector<MembersCalls> calls = CallsOf(situation, stuck);
  for (std::size_t g = 0; g < calls.size(); ++g) {
    if (calls[g].furthest == nullptr) continue;
    for (const std::size_t i : situation.groups[g].members) {
      missed[i] = missed[i] ||
                  LeftBefore(situation.views[i], static_cast<int>(g), calls[g].furthest->sequence);
    }
  }
  return missed;
}

std::vector<Finding> FindSurplus(const Situation& situation, const Stuck& stuck) {
  std::vector<Finding> findings;
  const std::vector<MembersCalls> all = CallsOf(situation, stuck);
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
        fmt::format("{} {} {}, which {} never called: {} in order", FormatRanks(finding.culprits),
                    Verb(finding.culprits, "calls", "call"),
                    DescribeInvocation(*calls.furthest_surplus), FormatRanks(RanksOf(left)),
                    left.size() == 1 ? "it ended its program" : "they ended their program");
    if (!calls.behind.empty()) {
      finding.message +=
          fmt::format("; {} {} not called it, and {} for {}", FormatRanks(calls.behind),
                      Verb(calls.behind, "has", "have"), Verb(calls.behind, "waits", "wait"),
                      FormatRanks(finding.culprits));
    }
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
