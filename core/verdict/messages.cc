// Copies the evidence with each message on a communicator of its two ranks, so that the judge needs
// no rule for sends and receives. What it finds is told with the operations as they were called.
#include "core/verdict/messages.h"

#include <algorithm>
#include <map>
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
  }

  std::optional<SplitEvidence> Run() {
    for (RankEvidence& rank : split_.evidence) {
      for (JournalEvent& event : rank.journal.events) {
        if (IsCollective(event) && !Place(rank.rank, event)) return std::nullopt;
      }
    }
    return std::move(split_);
  }

 private:
  // False: where it stands is not known.
  bool Place(int rank, JournalEvent& event) {
    const std::uint64_t before = std::exchange(event.messages_before, 0);
    if (before == journal::kUnknownMessages) return false;
    if (!IsMessage(event)) {
      event.sequence -= std::min(event.sequence, before);
      return true;
    }
    const std::optional<std::uint16_t> lane = LaneOf(rank, event);
    if (!lane) return false;
    event.communicator = *lane;
    event.sequence = before;
    return true;
  }

  std::optional<std::uint16_t> LaneOf(int rank, const JournalEvent& event) {
    const auto place = std::tuple(rank, event.communicator, event.collective, event.root);
    const auto known = known_.find(place);
    if (known != known_.end()) return known->second;
    return known_[place] = FindLane(rank, event);
  }

  // Nothing: it is not known who the two are.
  std::optional<std::uint16_t> FindLane(int rank, const JournalEvent& event) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const CommunicatorGroup& group = groups_[g];
      if (group.communicator != event.communicator) continue;
      if (std::ranges::find(group.ranks, rank) == group.ranks.end()) continue;
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
  std::map<std::tuple<std::size_t, int, int>, std::uint16_t> lanes_;
  std::map<std::tuple<int, std::uint16_t, collective::Collective, std::int32_t>,
           std::optional<std::uint16_t>>
      known_;
};

}  // namespace

bool StandsAmongMessages(const JournalEvent& event) {
  return IsMessage(event) || event.messages_before > 0;
}

std::optional<SplitEvidence> SplitByPeer(const std::vector<RankEvidence>& evidence,
                                         const Setting& setting) {
  const bool any = std::ranges::any_of(evidence, [](const RankEvidence& rank) {
    return std::ranges::any_of(rank.journal.events, [](const JournalEvent& event) {
      return IsCollective(event) && StandsAmongMessages(event);
    });
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
