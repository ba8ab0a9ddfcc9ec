// Wrong data, by a check of the results, and why the journals say that they are: a rank received
// fewer messages than were sent to it, so that each of its receives takes an earlier one.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/verdict/finders/find.h"
#include "core/verdict/messages.h"
#include "core/verdict/rank_view.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

// How many messages of the group it called, if nothing is lost and no more will follow.
std::optional<std::uint64_t> CalledInAll(const RankView& view, int group) {
  if (!FinishedInOrder(view) || !view.complete()) return std::nullopt;
  const Track* const track = view.On(group);
  return track == nullptr ? 0 : track->queued;
}

// Of ranks with wrong data.
std::vector<Finding> FindUnreceived(const Situation& situation) {
  std::vector<Finding> findings;
  for (std::size_t g = 0; g < situation.groups.size(); ++g) {
    const Group& group = situation.groups[g];
    if (group.communicator < kFirstLane || group.making || group.members.size() != 2) continue;
    const RankView& sender = situation.views[group.members[0]];
    const RankView& receiver = situation.views[group.members[1]];
    if (receiver.evidence->wrong_data.empty()) continue;
    const auto sent = CalledInAll(sender, static_cast<int>(g));
    const auto received = CalledInAll(receiver, static_cast<int>(g));
    if (!sent || !received || *sent <= *received) continue;
    Finding finding{.cause = Cause::kCollectiveMismatch, .proved = true};
    finding.culprits = {sender.rank(), receiver.rank()};
    std::ranges::sort(finding.culprits);
    finding.headline =
        Headline("{} received {} of {} messages", verdict::Who(Views{&receiver}), *received, *sent);
    finding.headline.Add(" that rank {} sent to it", sender.rank());
    finding.message = fmt::format(
        "rank {} sent {} messages to rank {}, which received {}: where it leaves one out, its next "
        "receive takes that one",
        sender.rank(), *sent, receiver.rank(), *received);
    finding.remedy = fmt::format("Compare what {} send and receive: each message needs a receive.",
                                 FormatRanks(finding.culprits));
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

std::vector<Finding> FindWrongData(const Situation& situation) {
  const Views wrong = ViewsWhere(
      situation.views, [](const RankView& view) { return !view.evidence->wrong_data.empty(); });
  if (wrong.empty()) return {};
  const RankView& first = *wrong.front();
  Finding finding{.cause = Cause::kDataCorruption, .culprits = RanksOf(wrong), .proved = true};
  finding.message =
      fmt::format("{} received wrong data; rank {}: {}", FormatRanks(finding.culprits),
                  first.rank(), ShortLine(first.evidence->wrong_data));
  finding.headline = Headline(Who(wrong) + " received wrong data");
  finding.headline.Add("{}: {}", wrong.size() > 1 ? fmt::format("; rank {}", first.rank()) : "",
                       FirstWords(first.evidence->wrong_data, 12));
  finding.remedy = finding.cause.info().remedy;
  std::vector<Finding> findings = FindUnreceived(situation);
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace lockstep::verdict::finders
