// Ranks that all ended in order, and did not make as many calls on a communicator. A library that
// lets a root, a leaf or a sender go on alone shows nothing of it, or wrong data. No program may
// end so: by MPI-4.0, 11.2.2, each rank takes part in every collective of its communicators, and
// each message that is sent has a receive.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/verdict/finders/find.h"
#include "core/verdict/messages.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// Members of a group that made as many calls.
struct Party {
  std::uint64_t calls = 0;
  Views views = {};
};

// Its journal holds all that it ever called, and no call failed: after that it may leave some out.
bool IsWhole(const RankView& view) {
  return FinishedInOrder(view) && view.complete() &&
         std::ranges::none_of(view.evidence->journal.events, [](const JournalEvent& event) {
           return event.kind == EventKind::kError;
         });
}

// How often it called in all; nothing where it knows the communicator's number from an older life,
// or from another communicator.
std::optional<std::uint64_t> CallsOf(const RankView& view, int index, const Group& group) {
  if (const Track* const track = view.On(index)) return track->queued;
  const bool knows_another = std::ranges::any_of(view.tracks, [&](const Track& track) {
    return !track.making && track.communicator == group.communicator;
  });
  return knows_another ? std::nullopt : std::optional<std::uint64_t>(0);
}

// In the order of their first members; none where one is not certain.
std::vector<Party> PartiesOf(const Situation& situation, int index,
                             const std::vector<bool>& whole) {
  const Group& group = situation.GroupAt(index);
  if (group.making || !group.aligned) return {};
  if (!group.ranks.empty() && group.ranks.size() != group.members.size()) return {};
  std::vector<Party> parties;
  for (const std::size_t i : group.members) {
    const RankView& view = situation.views[i];
    const auto calls = whole[i] ? CallsOf(view, index, group) : std::nullopt;
    if (!calls) return {};
    auto party = std::ranges::find(parties, *calls, &Party::calls);
    if (party == parties.end()) party = parties.insert(party, {.calls = *calls});
    party->views.push_back(&view);
  }
  return parties;
}

Finding OfMessages(const Party& sender, const Party& receiver) {
  const int from = sender.views.front()->rank(), to = receiver.views.front()->rank();
  Finding finding{.cause = Cause::kCollectiveMismatch, .proved = true};
  finding.culprits = {std::min(from, to), std::max(from, to)};
  finding.headline = Headline("{} received {} of {} messages", verdict::Who(receiver.views),
                              receiver.calls, sender.calls);
  finding.headline.Add(" that rank {} sent to it", from);
  finding.message = fmt::format(
      "rank {} sent {} messages to rank {}, which received {}: where it leaves one out, its next "
      "receive takes that one",
      from, sender.calls, to, receiver.calls);
  finding.remedy = fmt::format("Compare what {} send and receive: each message needs a receive.",
                               FormatRanks(finding.culprits));
  return finding;
}

// The first that some called and others did not.
std::optional<JournalEvent> FirstUnequal(int group, const std::vector<Party>& parties) {
  const auto [least, most] = std::ranges::minmax_element(parties, {}, &Party::calls);
  const RankView& view = *most->views.front();
  const Track* const track = view.On(group);
  const auto& events = view.evidence->journal.events;
  const auto call = std::ranges::find_if(events, [&](const JournalEvent& event) {
    const bool newest = &event - events.data() >= static_cast<std::ptrdiff_t>(track->begin);
    return newest && IsOn(*track, event) && event.sequence == least->calls;
  });
  return call == events.end() ? std::nullopt : std::optional(*call);
}

// Whom most agree with is right; without a majority nobody can say who is wrong.
Finding OfCollectives(const Group& group, int index, std::vector<Party> parties) {
  std::ranges::stable_sort(parties, std::ranges::greater{},
                           [](const Party& party) { return party.views.size(); });
  const Party &most = parties[0], &next = parties[1];
  Finding finding{.cause = Cause::kCollectiveMismatch, .proved = true};
  finding.operation = FirstUnequal(index, parties);
  for (const Party& party : parties) {
    if (&party == &most && 2 * most.views.size() > group.members.size()) continue;
    const std::vector<int> ranks = RanksOf(party.views);
    finding.culprits.insert(finding.culprits.end(), ranks.begin(), ranks.end());
  }
  std::ranges::sort(finding.culprits);
  finding.headline = Headline("{} made {} collective call{} on {}", verdict::Who(next.views),
                              next.calls, next.calls == 1 ? "" : "s", group.name);
  finding.headline.Add(", {} made {}", FormatRanks(RanksOf(most.views)), most.calls);
  finding.message = fmt::format(
      "{} made {} collective call{} on {} (communicator {}), {} made {}{}; all ended in order: the "
      "library let ranks go on that others never met",
      FormatRanks(RanksOf(next.views)), next.calls, next.calls == 1 ? "" : "s", group.name,
      group.communicator, FormatRanks(RanksOf(most.views)), most.calls,
      parties.size() > 2 ? fmt::format(" (and {} more counts)", parties.size() - 2) : "");
  finding.remedy = fmt::format(
      "Compare what {}{} call: every rank must take part in each collective of its communicators.",
      FormatRanks(finding.culprits),
      finding.culprits.size() < group.members.size() ? " and the others" : "");
  return finding;
}

}  // namespace

std::vector<Finding> FindUnequalCalls(const Situation& situation, bool with_wrong_data) {
  std::vector<bool> whole;
  for (const RankView& view : situation.views) whole.push_back(IsWhole(view));
  std::vector<Finding> findings;
  for (std::size_t g = 0; g < situation.groups.size(); ++g) {
    const auto index = static_cast<int>(g);
    const Group& group = situation.groups[g];
    const std::vector<Party> parties = PartiesOf(situation, index, whole);
    if (parties.size() < 2) continue;
    const bool messages = group.communicator >= kFirstLane;
    const bool wrong = std::ranges::any_of(parties, [&](const Party& party) {
      const bool counts_here = !messages || &party == &parties[1];  // the receiver
      return counts_here && std::ranges::any_of(party.views, [](const RankView* view) {
               return !view->evidence->wrong_data.empty();
             });
    });
    if (wrong != with_wrong_data) continue;
    if (messages && parties[0].calls < parties[1].calls) continue;
    findings.push_back(messages ? OfMessages(parties[0], parties[1])
                                : OfCollectives(group, index, parties));
  }
  return findings;
}

}  // namespace lockstep::verdict::finders
