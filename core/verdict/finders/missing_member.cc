// Communicators that not all ranks make: who makes one waits for all ranks of its parent, members
// and others alike (MPI_Comm_split, ncclCommSplit, PyTorch's new_group; pytorch#25390).
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "core/verdict/finders/explanation.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// The earliest making of a group that ranks wait in.
struct Making {
  const JournalEvent* event = nullptr;
  Views waiting = {};
  Views absent = {};  // they did not take part, and are gone or elsewhere
};

bool TookPart(const RankView& view, int group, std::uint64_t sequence) {
  const Track* track = view.On(group);
  // What the ring of a journal lost proves nothing.
  return track == nullptr ? !view.complete() : track->started > sequence;
}

// It may come yet: it is in no call, or nobody knows where it is.
bool MayCome(const RankView& view) {
  return view.evidence->state == ProcessState::kLost ||
         (OwesProgress(view) && view.open == nullptr);
}

Making MakingOf(const Situation& situation, int group) {
  Making making;
  const Views members = ViewsAt(situation.views, situation.GroupAt(group).members);
  for (const RankView* view : members) {
    if (!OwesProgress(*view) || !view->waits_in(group)) continue;
    making.waiting.push_back(view);
    const bool earlier = making.event == nullptr || view->open->sequence < making.event->sequence;
    if (earlier) making.event = view->open;
  }
  if (making.event == nullptr) return making;
  for (const RankView* view : members) {
    if (TookPart(*view, group, making.event->sequence) || MayCome(*view)) continue;
    making.absent.push_back(view);
  }
  return making;
}

bool IsAmong(const std::vector<int>& some, const std::vector<int>& all) {
  return !some.empty() &&
         std::ranges::all_of(some, [&](int rank) { return std::ranges::binary_search(all, rank); });
}

// The general finding says no more than that somebody is not in this making.
bool IsAbout(const Finding& general, const Making& making) {
  const std::vector<int> waiting = RanksOf(making.waiting);
  if (general.cause == Cause::kOrderInversion) {
    return std::ranges::any_of(general.culprits,
                               [&](int rank) { return std::ranges::binary_search(waiting, rank); });
  }
  if (general.cause == Cause::kCollectiveMismatch) {
    return !general.operation && IsAmong(general.culprits, waiting);
  }
  if (general.cause != Cause::kRankExited || !IsAmong(general.culprits, RanksOf(making.absent))) {
    return false;
  }
  // Who left too early left more than this making.
  return std::ranges::all_of(making.absent, [&](const RankView* view) {
    return FinishedInOrder(*view) || std::ranges::count(general.culprits, view->rank()) == 0;
  });
}

std::string NameOfMade(const Situation& situation, const JournalEvent& event) {
  for (const Group& group : situation.groups) {
    if (!group.making && group.communicator == event.count) return fmt::format(" '{}'", group.name);
  }
  return "";
}

// Whom the finding blames comes first.
Headline HeadlineOf(const Making& making, bool most_absent) {
  const std::vector<int> waiting = RanksOf(making.waiting), absent = RanksOf(making.absent);
  const std::string making_of = NameOfInvocation(*making.event);
  if (most_absent) {
    return Headline("{} {} in {}", Who(making.waiting), Verb(waiting, "waits", "wait"), making_of)
        .Add("; {} {} not take part", FormatRanks(absent), Verb(absent, "does", "do"));
  }
  return Headline("{} {} not take part in {}", Who(making.absent), Verb(absent, "does", "do"),
                  making_of)
      .Add(WaitingClause(waiting, absent));
}

// Why it came to what `general` says, if that is the making of a communicator in which not all
// ranks of its parent take part; as certain as `general` is. The culprits are who did not take
// part, unless those are most.
std::optional<Finding> ExplainMaking(const Situation& situation, const std::vector<Mismatch>&,
                                     const Finding& general) {
  for (std::size_t g = 0; g < situation.groups.size(); ++g) {
    if (!situation.groups[g].making) continue;
    const Making making = MakingOf(situation, static_cast<int>(g));
    if (making.absent.empty() || !IsAbout(general, making)) continue;
    const std::size_t members = situation.groups[g].members.size();
    const bool most_absent = 2 * making.absent.size() > members;
    const std::vector<int> waiting = RanksOf(making.waiting);
    const std::vector<int> absent = RanksOf(making.absent);
    const RankView& first = *making.absent.front();
    return Finding{
        .cause = Cause::kInitFailure,
        .culprits = most_absent ? waiting : absent,
        .proved = general.proved,
        .message = fmt::format(
            "{} {} in {}{}, in which {} did not take part: rank {} {}", FormatRanks(waiting),
            Verb(waiting, "waits", "wait"), DescribeInvocation(*making.event),
            NameOfMade(situation, *making.event), FormatRanks(absent), first.rank(),
            IsGone(first) ? FateOf(first)
                          : (first.open != nullptr ? "is in " : "is ") + WhereOf(first)),
        .remedy =
            "Let all ranks make the same communicators in the same order, members and others alike "
            "(torch.distributed.new_group is called by every rank), before any of them is used.",
        .headline = HeadlineOf(making, most_absent)};
  }
  return std::nullopt;
}

Explanation missing_member(Cause::kInitFailure, ExplainMaking);

}  // namespace
}  // namespace lockstep::verdict::finders
