// Who of a launch is still there.
#include <algorithm>

#include "core/base/clock.h"
#include "core/coordinator/coordinator_impl.h"
#include "core/coordinator/failover.h"

namespace lockstep::coordinator {

void CoordinatorImpl::SendRoster(const std::vector<control::Contact>& contacts) {
  control::Roster roster = {heartbeats_->lost_seconds(), agents_,
                            control::ChooseCandidates(contacts)};
  const std::string with = control::Encode(roster);
  roster.agents.clear();
  const std::string without = control::Encode(roster);
  for (int rank = 1; rank < size(); ++rank) {
    const bool candidate =
        std::any_of(roster.candidates.begin(), roster.candidates.end(),
                    [rank](const control::Contact& contact) { return contact.rank == rank; });
    Order(rank, control::FrameType::kRoster, candidate ? with : without);
    if (candidate) candidates_.push_back(rank);
  }
}

void CoordinatorImpl::Replicate(const std::string& record) {
  for (const int rank : candidates_) Order(rank, control::FrameType::kReplicated, record);
}

void CoordinatorImpl::Lose(int rank, verdict::Loss loss) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.lost) return;
  member.lost = true;
  // Who left while we were stopped may have had no way to say so.
  if ((loss == verdict::Loss::kClosed || loss == verdict::Loss::kReset) && heartbeats_->overslept())
    loss = verdict::Loss::kLeft;
  if (member.loss == verdict::Loss::kNone) member.loss = loss;
  member.channel->Close();
  Push(EventKind::kLost, rank);
}

void CoordinatorImpl::LoseSilent(int rank) {
  const Member& member = members_[static_cast<std::size_t>(rank)];
  if (rank != 0) Lose(rank, SilenceOf(*member.channel));
}

// Its agent lives, and can be asked: but the launcher will end all of us, or has done so.
void CoordinatorImpl::OnLauncherGone(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.loss != verdict::Loss::kNone) return;
  member.loss = verdict::Loss::kLauncher;
  Push(EventKind::kLost, rank);
  if (rank != 0) return;
  terminating_ = true;
  events_.push_front(Event{EventKind::kTerminate, 0, {}, 0, 0});
}

// Its agent lives for a moment, and can be asked until then.
void CoordinatorImpl::OnToldToEnd(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.loss != verdict::Loss::kNone) return;
  member.loss = verdict::Loss::kTold;
  Push(EventKind::kLost, rank);
}

void CoordinatorImpl::KeepHeartbeats() {
  const std::int64_t awake_ns = heartbeats_->Turn(MonotonicNs());
  if (heartbeats_->TakeHeartbeat(awake_ns)) {
    for (int rank = 1; rank < size(); ++rank) Order(rank, control::FrameType::kHeartbeat);
  }
  for (int rank = 1; rank < size(); ++rank) {
    const Member& member = members_[static_cast<std::size_t>(rank)];
    if (!member.lost && heartbeats_->IsLost(member.heard_ns, awake_ns)) LoseSilent(rank);
  }
}

void CoordinatorImpl::Rest() {
  for (int rank = 1; rank < size(); ++rank) Order(rank, control::FrameType::kRest);
}

std::vector<verdict::RankPlace> CoordinatorImpl::places() const {
  std::vector<verdict::RankPlace> places;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Member& member = members_[rank];
    verdict::Loss loss = member.loss != verdict::Loss::kNone ? member.loss : member.suspected;
    // A launch that is told to end as a whole loses nobody by that.
    if (loss == verdict::Loss::kTold && terminating_ && !member.told_alone)
      loss = verdict::Loss::kNone;
    places.push_back({agents_[rank].host, loss});
  }
  return places;
}

}  // namespace lockstep::coordinator
