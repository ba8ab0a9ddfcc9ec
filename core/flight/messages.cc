// Sends and receives. They meet in order between two ranks of a group, so that the oldest that wait
// belong together. A chain of ranks that wait for each other may lead through collectives.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/flight/findings.h"
#include "core/flight/mismatch.h"

namespace lockstep::flight {
namespace {

// What a rank waits in, if it is a message with one peer.
struct Message {
  const FlightCall* call = nullptr;
  std::size_t dump = 0;
  std::size_t peer = 0;  // its dump; dumps.size(): none
};

class Messages {
 public:
  explicit Messages(const FlightView& view) : view_(view), of_(view.job.dumps.size()) {
    for (std::size_t d = 0; d < of_.size(); ++d) of_[d] = MessageOf(d);
  }

  std::vector<Finding> Find() const {
    std::vector<Finding> findings;
    std::vector<std::size_t> seen(of_.size());  // in which chain; 0: in none
    for (std::size_t d = 0; d < of_.size(); ++d) {
      if (of_[d].call == nullptr || seen[d] != 0) continue;
      if (auto finding = Follow(d, seen)) findings.push_back(std::move(*finding));
    }
    return findings;
  }

 private:
  Message MessageOf(std::size_t d) const {
    const FlightCall* open = view_.OpenOf(d);
    const bool single = open != nullptr && open->point_to_point && open->peer >= 0 &&
                        (open->kind == FlightKind::kSend || open->kind == FlightKind::kRecv);
    if (!single) return {};
    const FlightTeam& team = view_.job.TeamOf(d, *open);
    const auto place = static_cast<std::size_t>(open->peer);
    if (!team.told || place >= team.ranks.size()) return {};
    return {open, d, view_.DumpOf(team.ranks[place])};
  }

  int RankOf(std::size_t dump) const { return view_.job.dumps[dump].rank; }

  // Whether a call to `place` of the message's team, of its peer, is its other side.
  bool Answers(const Message& message, FlightKind kind, std::int32_t place) const {
    const FlightTeam& team = view_.job.TeamOf(message.dump, *message.call);
    const FlightKind wanted =
        message.call->kind == FlightKind::kSend ? FlightKind::kRecv : FlightKind::kSend;
    return kind == wanted && 0 <= place && static_cast<std::size_t>(place) < team.ranks.size() &&
           team.ranks[static_cast<std::size_t>(place)] == RankOf(message.dump);
  }

  // The peer's open calls in the same team, the oldest first, for which `fits`.
  template <typename Fits>
  std::vector<const FlightCall*> OpenOfPeer(const Message& message, const Fits& fits) const {
    std::vector<const FlightCall*> found;
    const FlightTeam& team = view_.job.TeamOf(message.dump, *message.call);
    for (const FlightCall& call : view_.job.dumps[message.peer].calls) {
      if (view_.IsDone(message.peer, call) || !call.point_to_point) continue;
      if (&view_.job.TeamOf(message.peer, call) == &team && fits(call)) found.push_back(&call);
    }
    return found;
  }

  std::vector<const FlightCall*> Counterparts(const Message& message) const {
    return OpenOfPeer(
        message, [&](const FlightCall& call) { return Answers(message, call.kind, call.peer); });
  }

  // The other side is a part of a batch, or of one whose parts the dump does not hold. What keeps
  // them apart is not known.
  bool MayMeetInBatch(const Message& message) const {
    const auto holds = [&](const FlightCall& call) {
      if (call.kind != FlightKind::kCoalesced) return false;
      return call.cut || std::ranges::any_of(call.messages, [&](const FlightMessage& part) {
               return Answers(message, part.kind, part.peer);
             });
    };
    return !OpenOfPeer(message, holds).empty();
  }

  // What a rank waits in, if it is a collective whose members are known; or nullptr.
  const FlightCall* CollectiveOf(std::size_t d) const {
    const FlightCall* open = view_.OpenOf(d);
    if (open == nullptr || open->point_to_point || view_.WentOnBeside(d, *open)) return nullptr;
    const FlightTeam& team = view_.job.TeamOf(d, *open);
    const bool queued = view_.job.dumps[d].tells_starts && !open->started;
    return team.told && team.aligned && !queued ? open : nullptr;
  }

  // Who has not called it: one that waits for nobody, if there is any. dumps.size(): nobody, or
  // there is no dump of a member.
  std::size_t LackedBy(std::size_t d, const FlightCall& collective) const {
    const auto standings = view_.At(view_.TeamIndex(d, collective), collective.sequence);
    std::size_t lacked = of_.size();
    if (standings.size() < view_.job.TeamOf(d, collective).ranks.size()) return lacked;
    for (const FlightStanding& one : standings) {
      const bool lost = one.last == nullptr && view_.job.dumps[one.dump].missed > 0;
      if (one.call != nullptr || lost) continue;
      if (!of_[one.dump].call && !CollectiveOf(one.dump)) return one.dump;
      if (lacked == of_.size()) lacked = one.dump;
    }
    return lacked;
  }

  // Who waits in a collective is no culprit, and whom that lacks Judge tells.
  std::optional<Finding> Follow(std::size_t first, std::vector<std::size_t>& seen) const {
    const std::size_t chain = first + 1;
    std::vector<std::size_t> path;
    for (std::size_t d = first; d < of_.size();) {  // without a dump: said elsewhere
      if (seen[d] == chain) return Ring({std::ranges::find(path, d), path.end()});
      if (seen[d] != 0) return std::nullopt;  // that chain was followed
      const Message& message = of_[d];
      const FlightCall* collective = CollectiveOf(d);
      if (message.call == nullptr && collective == nullptr) {
        const Message& last = of_[path.back()];
        return last.call == nullptr ? std::nullopt : std::optional(Waiting(last));
      }
      seen[d] = chain;
      path.push_back(d);
      if (message.call == nullptr) {
        d = LackedBy(d, *collective);
        continue;
      }
      if (message.peer == of_.size() || MayMeetInBatch(message)) return std::nullopt;
      const std::vector<const FlightCall*> others = Counterparts(message);
      if (!others.empty()) return Meeting(message, others);
      d = message.peer;
    }
    return std::nullopt;
  }

  // Both came. A library may have taken earlier sends already, so it could be any of the others.
  std::optional<Finding> Meeting(const Message& message,
                                 const std::vector<const FlightCall*>& others) const {
    const auto elements = [](const FlightCall& call) {
      return call.kind == FlightKind::kSend ? call.input_elements : call.output_elements;
    };
    const bool fits = std::ranges::any_of(
        others, [&](const FlightCall* one) { return elements(*one) == elements(*message.call); });
    if (fits) return std::nullopt;
    const FlightCall& other = *others.front();
    Finding finding{.cause = Cause::kCountMismatch,
                    .culprits = {RankOf(message.dump), RankOf(message.peer)}};
    std::ranges::sort(finding.culprits);
    finding.message = fmt::format("rank {} is in {}, rank {} in {}: the sizes differ",
                                  RankOf(message.dump), view_.Named(message.dump, *message.call),
                                  RankOf(message.peer), view_.Named(message.peer, other));
    finding.headline =
        Headline("rank {} is in {}, rank {} in {}: the sizes differ", RankOf(message.dump),
                 NameOf(view_.job, *message.call), RankOf(message.peer), NameOf(view_.job, other));
    finding.remedy = "Let both ranks send and receive tensors of the same size, in the same order.";
    return finding;
  }

  // One of collectives only is Judge's.
  std::optional<Finding> Ring(const std::vector<std::size_t>& ring) const {
    const auto messages =
        std::ranges::count_if(ring, [&](std::size_t d) { return of_[d].call != nullptr; });
    if (messages == 0) return std::nullopt;
    const bool mixed = static_cast<std::size_t>(messages) < ring.size();
    Finding finding{.cause = Cause::kOrderInversion};
    std::string text;
    for (const std::size_t d : ring) {
      finding.culprits.push_back(RankOf(d));
      text += fmt::format("{}rank {} waits in {}", text.empty() ? "" : ", ", RankOf(d),
                          view_.Named(d, *view_.OpenOf(d)));
    }
    std::ranges::sort(finding.culprits);
    finding.message = fmt::format("{}: a ring of {}, in which nobody answers", text,
                                  mixed ? "messages and collectives" : "messages");
    finding.headline = Headline("{} wait for each other{} in a ring", FormatRanks(finding.culprits),
                                mixed ? "" : "'s messages");
    finding.remedy =
        mixed ? "Let the ranks call their messages and the collectives of their process groups in "
                "one order."
              : "Put sends and receives that wait for each other into one batch_isend_irecv, or "
                "order them so that one rank receives first.";
    return finding;
  }

  Finding Waiting(const Message& message) const {
    Finding finding{.cause = Cause::kRankBusy, .culprits = {RankOf(message.peer)}};
    const FlightCall* open = view_.OpenOf(message.peer);
    finding.message = fmt::format(
        "rank {} waits in {} for {}, and rank {} has not called the other side of it{}",
        RankOf(message.dump), view_.Named(message.dump, *message.call),
        Seconds(view_.history.seconds), RankOf(message.peer),
        open == nullptr ? "" : ": it is in " + view_.Named(message.peer, *open));
    finding.headline = Headline("rank {} does not answer {}", RankOf(message.peer),
                                NameOf(view_.job, *message.call));
    finding.headline.Add(verdict::WaitingClause({RankOf(message.dump)}, {RankOf(message.peer)}));
    finding.remedy =
        fmt::format("See what rank {} does instead (its log, py-spy dump).", RankOf(message.peer));
    return finding;
  }

  const FlightView& view_;
  std::vector<Message> of_;  // by dump
};

}  // namespace

std::vector<Finding> FindWaitingMessages(const FlightView& view) {
  if (view.history.seconds < view.history.setting.deadline_seconds) return {};
  return Messages(view).Find();
}

}  // namespace lockstep::flight
