// Different operations in the same position of the world communicator: no rank can go on, or the
// result is wrong; either way the program is.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/verdict/findings.h"
#include "core/verdict/wording.h"

namespace lockstep {
namespace {

// What has to be the same on all ranks; fields that do not matter to the collective are 0.
using Signature = std::tuple<Collective, DataType, std::int64_t, int, Reduction>;

struct Group {
  std::vector<int> ranks;
  const JournalEvent* event = nullptr;
};

Signature SignatureOf(const JournalEvent& event) {
  const CollectiveInfo& info = InfoOf(event.collective);
  if (event.collective == Collective::kBarrier) {
    return {event.collective, DataType{}, 0, 0, Reduction{}};
  }
  return {event.collective, event.type, event.count, info.rooted ? event.root : 0,
          info.reduces ? event.reduction : Reduction{}};
}

std::string CauseOf(const Signature& a, const Signature& b) {
  if (std::get<Collective>(a) != std::get<Collective>(b)) return "collective_mismatch";
  if (std::get<DataType>(a) != std::get<DataType>(b)) return "type_mismatch";
  if (std::get<std::int64_t>(a) != std::get<std::int64_t>(b)) return "count_mismatch";
  if (std::get<int>(a) != std::get<int>(b)) return "root_mismatch";
  return "reduction_mismatch";
}

bool IsPointToPoint(const JournalEvent& event) {
  return event.collective == Collective::kSend || event.collective == Collective::kRecv;
}

// The earliest operation of the world in which a rank waits or failed.
const JournalEvent* FrontierOf(const Situation& situation) {
  const JournalEvent* frontier = nullptr;
  for (const RankView& view : situation.views) {
    const JournalEvent* event = nullptr;
    if (view.in_world_operation()) {
      event = &*view.open;
    } else if (view.newest_collective_failed() &&
               view.last_collective->communicator == kWorld) {
      event = view.last_collective;
    }
    if (event == nullptr) continue;
    if (frontier == nullptr || event->sequence < frontier->sequence) frontier = event;
  }
  return frontier;
}

// Largest first; among equals the one with the lowest rank.
std::vector<std::pair<Signature, Group>> GroupsAt(const Situation& situation,
                                                  const JournalEvent& position) {
  std::map<Signature, Group> groups;
  for (const RankView& view : situation.views) {
    const JournalEvent* event = WorldEventAt(view, position.sequence, position.case_index);
    // A send and a receive differ by their nature.
    if (event == nullptr || IsPointToPoint(*event)) continue;
    Group& group = groups[SignatureOf(*event)];
    group.ranks.push_back(view.rank());
    group.event = event;
  }
  std::vector<std::pair<Signature, Group>> sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    if (a.second.ranks.size() != b.second.ranks.size()) {
      return a.second.ranks.size() > b.second.ranks.size();
    }
    return a.second.ranks.front() < b.second.ranks.front();
  });
  return sorted;
}

}  // namespace

std::vector<Finding> FindMismatch(const Situation& situation) {
  const JournalEvent* position = FrontierOf(situation);
  if (position == nullptr) return {};
  const auto groups = GroupsAt(situation, *position);
  if (groups.size() < 2) return {};
  const auto& [most_signature, most] = groups[0];
  const auto& [next_signature, next] = groups[1];
  std::size_t all = 0;
  for (const auto& [signature, group] : groups) all += group.ranks.size();
  // Whom most agree with is right; without a majority nobody can say who is wrong.
  const bool majority = 2 * most.ranks.size() > all;
  Finding finding;
  finding.cause = CauseOf(most_signature, next_signature);
  finding.proved = true;
  for (const auto& [signature, group] : groups) {
    if (majority && &group == &most) continue;
    finding.culprits.insert(finding.culprits.end(), group.ranks.begin(), group.ranks.end());
  }
  std::sort(finding.culprits.begin(), finding.culprits.end());
  finding.message = fmt::format(
      "{} {} in {}, {} in {}{}: the same position, different operations", FormatRanks(most.ranks),
      Verb(most.ranks, "is", "are"), DescribeInvocation(*most.event), FormatRanks(next.ranks),
      DescribeInvocation(*next.event),
      groups.size() > 2 ? fmt::format(" (and {} more kinds)", groups.size() - 2) : "");
  finding.remedy = fmt::format(
      "Compare what {} and the others call before sequence {}: every rank must call the same "
      "collectives with the same arguments in the same order.",
      FormatRanks(finding.culprits), position->sequence);
  return {finding};
}

}  // namespace lockstep
