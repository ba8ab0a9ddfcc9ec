// Ranks that wait for each other in a ring: over several communicators, which they use in different
// orders, or in messages. To the judge the messages of two ranks are a communicator of their own
// (messages.h); a person is told of sends and receives.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "core/verdict/finders/find.h"
#include "core/verdict/messages.h"
#include "core/verdict/wording.h"

namespace lockstep::verdict::finders {
namespace {

bool IsInMessage(const RankView& view) { return view.open->communicator >= kFirstLane; }

// How a ring is told, by what its ranks wait in.
struct Wording {
  std::string_view they;  // "ranks 0 and 1 ..."
  std::string_view ring;
  std::string_view remedy;
};

Wording OfCollectives() {
  return {"wait for each other in different communicators", "a ring over communicators",
          "Call the collectives of different communicators in the same order on all ranks (with "
          "NCCL 2.26 or newer NCCL_LAUNCH_ORDER_IMPLICIT=1 lets one host thread's order decide)."};
}

Wording WordingOf(const Situation& situation, const std::vector<std::size_t>& cycle) {
  const auto count = [&](auto holds) {
    return static_cast<std::size_t>(
        std::ranges::count_if(cycle, [&](std::size_t i) { return holds(situation.views[i]); }));
  };
  const std::size_t messages = count(IsInMessage);
  if (messages == 0) return OfCollectives();
  if (messages < cycle.size()) {
    return {"wait for each other in messages and collectives", "a ring of messages and collectives",
            "Let all ranks come to a collective with the same messages before it: one that waits "
            "in a collective receives and sends nothing."};
  }
  const std::size_t sends = count(
      [](const RankView& view) { return view.open->collective == collective::Collective::kSend; });
  const bool two = cycle.size() == 2;
  constexpr std::string_view kRing = "a ring of messages";
  if (sends == cycle.size()) {
    return {two ? "send to each other, and neither receives"
                : "send to each other in a ring, and none receives",
            kRing,
            "Let one of them receive before it sends, or use calls that do both (MPI_Sendrecv; "
            "NCCL: one group; PyTorch: batch_isend_irecv)."};
  }
  if (sends == 0) {
    return {two ? "receive from each other, and neither sends"
                : "receive from each other in a ring, and none sends",
            kRing,
            "Let one of them send before it receives, or use calls that do both (MPI_Sendrecv; "
            "NCCL: one group; PyTorch: batch_isend_irecv)."};
  }
  return {"wait for each other's messages", kRing,
          "Let the two ranks of every message come to it in the same order, or use calls that do "
          "not wait (MPI_Isend, MPI_Irecv; NCCL: one group)."};
}

Finding Inversion(const Situation& situation, const std::vector<std::size_t>& cycle, bool proved) {
  constexpr std::size_t kShown = 4;
  const Wording wording = WordingOf(situation, cycle);
  Finding finding{.cause = Cause::kOrderInversion, .proved = proved};
  for (std::size_t n = 0; n < cycle.size(); ++n) {
    const RankView& view = situation.views[cycle[n]];
    const RankView& next = situation.views[cycle[(n + 1) % cycle.size()]];
    finding.culprits.push_back(view.rank());
    if (n >= kShown) continue;
    const std::string& group = situation.GroupAt(view.open_group).name;
    finding.message += fmt::format("{}rank {} waits in {}{} for rank {}", n == 0 ? "" : ", ",
                                   view.rank(), DescribeInvocation(*view.open),
                                   IsInMessage(view) ? "" : " (" + group + ")", next.rank());
  }
  if (cycle.size() > kShown)
    finding.message += fmt::format(" (and {} more)", cycle.size() - kShown);
  finding.message += fmt::format(": {}, in which nobody comes", wording.ring);
  finding.remedy = wording.remedy;
  std::ranges::sort(finding.culprits);
  const RankView& first = situation.views[cycle.front()];
  finding.operation = OperationIn(first.open);
  finding.headline = Headline("{} {}", FormatRanks(finding.culprits), wording.they);
  finding.headline.Add("; rank {} {}", first.rank(), InOrWhile(first, NameOfInvocation));
  return finding;
}

// The ring that there is if every send waits for its receive. Where a library keeps small messages,
// one that it did not keep until the deadline is taken to wait.
std::vector<std::size_t> RingOfSends(const Situation& situation,
                                     const std::vector<Mismatch>& mismatches) {
  const bool any = std::ranges::any_of(situation.views, [&](const RankView& view) {
    return view.waits_in_group() && IsInMessage(view) && situation.overdue(view);
  });
  if (situation.semantics.sends_wait || !any) return {};
  Situation waiting = situation;
  waiting.semantics.sends_wait = true;
  return FindStuck(waiting, mismatches, true).cycle;
}

}  // namespace

std::vector<Finding> FindInversion(const Situation& situation,
                                   const std::vector<Mismatch>& mismatches) {
  if (situation.groups.size() < 2) return {};
  std::vector<std::size_t> cycle = FindStuck(situation, mismatches, true).cycle;
  const bool proved = situation.one_stream && !cycle.empty();
  if (cycle.empty()) cycle = RingOfSends(situation, mismatches);
  if (cycle.empty()) return {};
  const bool silent = std::ranges::all_of(
      cycle, [&](std::size_t i) { return situation.overdue(situation.views[i]); });
  if (!proved && !silent) return {};
  return {Inversion(situation, cycle, proved)};
}

}  // namespace lockstep::verdict::finders
