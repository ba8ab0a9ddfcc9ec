// Who of a launch is still there.
#include <algorithm>

#include "core/base/clock.h"
#include "core/coordinator/fleet_impl.h"
#include "core/coordinator/succession.h"

namespace lockstep::coordinator {

void FleetImpl::SendRoster(const std::vector<control::Contact>& contacts) {
  const control::Roster roster = {vigil_->lost_seconds(), agents_,
                                  control::ChooseCandidates(contacts)};
  const std::string with = control::EncodeRoster(roster, /*with_agents=*/true);
  const std::string without = control::EncodeRoster(roster, /*with_agents=*/false);
  for (int rank = 1; rank < size(); ++rank) {
    const bool candidate =
        std::any_of(roster.candidates.begin(), roster.candidates.end(),
                    [rank](const control::Contact& contact) { return contact.rank == rank; });
    Order(rank, control::FrameType::kRoster, candidate ? with : without);
    if (candidate) candidates_.push_back(rank);
  }
}

void FleetImpl::Entrust(const std::string& record) {
  for (const int rank : candidates_) Order(rank, control::FrameType::kEntrusted, record);
}

void FleetImpl::Lose(int rank, verdict::Loss loss) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  if (member.lost) return;
  member.lost = true;
  // Who left while we were stopped may have had no way to say so.
  if ((loss == verdict::Loss::kClosed || loss == verdict::Loss::kReset) && vigil_->overslept())
    loss = verdict::Loss::kLeft;
  if (member.loss == verdict::Loss::kNone) member.loss = loss;
  member.channel->Close();
  Push(FleetEventKind::kLost, rank);
}

void FleetImpl::LoseSilent(int rank) {
  const FleetMember& member = members_[static_cast<std::size_t>(rank)];
  if (rank != 0) Lose(rank, SilenceOf(*member.channel));
}

// Its agent lives, and can be asked: but the launcher will end all of us, or has done so.
void FleetImpl::OnLauncherGone(int rank) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  if (member.loss != verdict::Loss::kNone) return;
  member.loss = verdict::Loss::kLauncher;
  Push(FleetEventKind::kLost, rank);
  if (rank != 0) return;
  terminating_ = true;
  events_.push_front(FleetEvent{FleetEventKind::kTerminate, 0, {}, 0, 0});
}

// Its agent lives for a moment, and can be asked until then.
void FleetImpl::OnToldToEnd(int rank) {
  FleetMember& member = members_[static_cast<std::size_t>(rank)];
  if (member.loss != verdict::Loss::kNone) return;
  member.loss = verdict::Loss::kTold;
  Push(FleetEventKind::kLost, rank);
}

void FleetImpl::KeepVigil() {
  const std::int64_t awake_ns = vigil_->Turn(MonotonicNs());
  if (vigil_->TakeBeat(awake_ns)) {
    for (int rank = 1; rank < size(); ++rank) Order(rank, control::FrameType::kBeat, {});
  }
  for (int rank = 1; rank < size(); ++rank) {
    const FleetMember& member = members_[static_cast<std::size_t>(rank)];
    if (!member.lost && vigil_->IsLost(member.heard_ns, awake_ns)) LoseSilent(rank);
  }
}

void FleetImpl::Rest() {
  for (int rank = 1; rank < size(); ++rank) Order(rank, control::FrameType::kRest, {});
}

std::vector<verdict::RankPlace> FleetImpl::places() const {
  std::vector<verdict::RankPlace> places;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const FleetMember& member = members_[rank];
    verdict::Loss loss = member.loss != verdict::Loss::kNone ? member.loss : member.suspected;
    // A launch that is told to end as a whole loses nobody by that.
    if (loss == verdict::Loss::kTold && terminating_ && !member.told_alone)
      loss = verdict::Loss::kNone;
    places.push_back({agents_[rank].host, loss});
  }
  return places;
}

}  // namespace lockstep::coordinator
