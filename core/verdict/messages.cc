// Copies the evidence with each message on a communicator of its two ranks, so that the judge needs
// no rule for sends and receives. What it finds is told with the operations as they were called.
#include "core/verdict/messages.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/verdict/rank_view.h"

namespace lockstep::verdict {
namespace {

bool IsMessage(const JournalEvent& event) {
  return IsCollective(event) && collective::IsMessage(event.collective);
}

class Sorting {
 public:
  Sorting(const std::vector<RankEvidence>& evidence, const Setting& setting)
      : split_{evidence, setting} {
    CommunicatorGroup world{kWorld, "world", {}};
    for (const RankEvidence& rank : evidence) world.ranks.push_back(rank.rank);
    std::ranges::sort(world.ranks);
    groups_.push_back(std::move(world));
    groups_.insert(groups_.end(), setting.groups.begin(), setting.groups.end());
    for (const RankEvidence& rank : evidence) {
      for (const JournalEvent& event : rank.journal.events) {
        if (IsMessage(event)) mixed_.insert(event.communicator);
      }
    }
  }

  std::optional<SplitEvidence> Run() {
    if (mixed_.empty()) return std::nullopt;
    for (RankEvidence& rank : split_.evidence) {
      if (rank.journal.missed > 0 || !Sort(rank)) return std::nullopt;
    }
    return std::move(split_);
  }

 private:
  // Of one rank: how far it is, and where its calls went.
  struct Counts {
    std::uint64_t messages = 0;  // of this life of the communicator
    std::map<std::uint16_t, std::uint64_t> in_lane = {};
    std::map<std::uint64_t, std::pair<std::uint16_t, std::uint64_t>> places = {};  // by sequence
  };

  bool Sort(RankEvidence& rank) {
    std::map<std::uint16_t, Counts> counts;
    for (JournalEvent& event : rank.journal.events) {
      if (!IsCollective(event) || !mixed_.contains(event.communicator)) continue;
      Counts& count = counts[event.communicator];
      if (event.kind == EventKind::kEnqueue && event.sequence == 0) count = {};
      const auto [place, is_new] = count.places.try_emplace(event.sequence);
      if (is_new) {
        const std::optional<std::uint16_t> lane =
            IsMessage(event) ? LaneOf(rank.rank, event) : event.communicator;
        if (!lane) return false;
        const bool message = *lane != event.communicator;
        const std::uint64_t position =
            message ? count.in_lane[*lane]++ : event.sequence - count.messages;
        if (message) ++count.messages;
        place->second = {*lane, position};
      }
      std::tie(event.communicator, event.sequence) = place->second;
    }
    return true;
  }

  // Nothing: it is not known who the two are.
  std::optional<std::uint16_t> LaneOf(int rank, const JournalEvent& event) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const CommunicatorGroup& group = groups_[g];
      const bool member = std::ranges::find(group.ranks, rank) != group.ranks.end();
      if (group.communicator != event.communicator || !member) continue;
      const auto peer = static_cast<std::size_t>(event.root);
      if (event.root < 0 || peer >= group.ranks.size()) return std::nullopt;
      const bool sends = event.collective == collective::Collective::kSend;
      const int from = sends ? rank : group.ranks[peer];
      const int to = sends ? group.ranks[peer] : rank;
      const auto next = static_cast<std::uint16_t>(kFirstLane + lanes_.size());
      const auto [lane, is_new] = lanes_.try_emplace({g, from, to}, next);
      if (!is_new) return lane->second;
      if (next < kFirstLane) return std::nullopt;  // more pairs than there are numbers
      split_.setting.groups.push_back({next, "messages of " + group.name, {from, to}});
      return next;
    }
    return std::nullopt;
  }

  SplitEvidence split_;
  std::vector<CommunicatorGroup> groups_;  // as given, the world first
  std::set<std::uint16_t> mixed_;
  std::map<std::tuple<std::size_t, int, int>, std::uint16_t> lanes_;
};

}  // namespace

std::optional<SplitEvidence> SplitByPeer(const std::vector<RankEvidence>& evidence,
                                         const Setting& setting) {
  const bool any = std::ranges::any_of(evidence, [](const RankEvidence& rank) {
    return std::ranges::any_of(rank.journal.events, IsMessage);
  });
  if (!any) return std::nullopt;
  return Sorting(evidence, setting).Run();
}

void RestoreOperations(const std::vector<RankEvidence>& evidence, Judgement& judgement) {
  const auto restore = [&](JournalEvent& operation) {
    for (const RankEvidence& rank : evidence) {
      const auto& events = rank.journal.events;
      const auto found =
          std::ranges::lower_bound(events, operation.index, {}, &JournalEvent::index);
      if (found == events.end() || found->index != operation.index) continue;
      if (found->ticks != operation.ticks || found->nth != operation.nth) continue;
      operation = *found;
      return;
    }
  };
  for (Finding& finding : judgement.findings) {
    if (finding.operation) restore(*finding.operation);
    for (Finding& general : finding.evidence) {
      if (general.operation) restore(*general.operation);
    }
  }
}

}  // namespace lockstep::verdict
