// A launcher ends ranks because of one, or all of them for a reason of its own: whom a process of
// the command told to end is not blamed. That was written down before the signal was sent, so it is
// there when the rank is gone.
#include "watch/run/rank_ends.h"

#include <algorithm>

namespace lockstep::watch::run {
namespace {

constexpr int kLeavingLooks = 200;  // an exit that lasts longer hangs by itself

}  // namespace

void RankEnds::Note(int rank, const ProcessFacts& facts, bool gone) {
  if (facts.ended_ticks != 0 && (ended_ticks_ == 0 || facts.ended_ticks < ended_ticks_)) {
    ended_ticks_ = facts.ended_ticks;
  }
  gone_[rank] = gone ? gone_[rank] + 1 : 0;
  if (gone && facts.exited && facts.exit_code == 0) exited_.insert(rank);
}

int RankEnds::LooksOf(int rank) const {
  const auto found = gone_.find(rank);
  return found == gone_.end() ? 0 : found->second;
}

bool RankEnds::HasFresh() const {
  return std::ranges::any_of(gone_, [](const auto& each) { return each.second == 1; });
}

bool RankEnds::HasGone() const {
  return std::ranges::any_of(gone_, [](const auto& each) { return each.second > 0; });
}

std::vector<RankEnds::Told> RankEnds::Tell(const std::map<int, ProcessFacts>& ends, bool leaves,
                                           bool over) const {
  // Who ended itself was not ended because of one that died in the same look.
  std::vector<Told> exited, died, ended;
  for (const auto& [rank, facts] : ends) {
    const bool was_ended = WasEnded(facts);
    // A launcher ends others because of one that exits, and may be quicker than its exit.
    const bool held = leaves && !over && LooksOf(rank) < kLeavingLooks;
    if (facts.exited && !was_ended) {
      exited.push_back({rank, judge::End::kExited, facts.exit_code});
    } else if (was_ended && !held) {
      ended.push_back({rank, judge::End::kDied, 0, false, true});
    } else if (!held) {
      const judge::End how = facts.quit ? judge::End::kQuit : judge::End::kDied;
      died.push_back({rank, how, facts.exit_code, DiedFirst(rank)});
    }
  }
  exited.insert(exited.end(), died.begin(), died.end());
  // One that is gone, and not read to its end, may be the reason.
  const bool settled = over || std::ranges::all_of(gone_, [&](const auto& each) {
                         return each.second == 0 || ends.contains(each.first);
                       });
  if (settled) exited.insert(exited.end(), ended.begin(), ended.end());
  return exited;
}

bool RankEnds::WasEnded(const ProcessFacts& facts) const {
  if (facts.exited_ticks == 0) return facts.ended_ticks != 0;
  return ended_ticks_ != 0 && facts.exited_ticks > ended_ticks_;
}

// Another one that failed was seen alive after this one was seen gone. News of another host may be
// a look late.
bool RankEnds::DiedFirst(int rank) const {
  const int looks = LooksOf(rank);
  if (gone_elsewhere_ > 0 && looks <= gone_elsewhere_ + 1) return false;
  return std::ranges::all_of(gone_, [&](const auto& other) {
    return other.first == rank || other.second == 0 || exited_.contains(other.first) ||
           looks > other.second + (several_hosts_ ? 1 : 0);
  });
}

}  // namespace lockstep::watch::run
