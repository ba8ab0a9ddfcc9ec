// How ranks end, and which of them is to be blamed. A launcher ends others because of one, or all
// of them for a reason of its own: whom a process of the command told to end is not blamed. That
// was written down before the signal was sent, so it is there when the rank is gone.
#include <algorithm>
#include <map>
#include <utility>

#include "watch/run/job.h"

namespace lockstep::watch::run {
namespace {

// A stop is told after kStoppedNs: who stopped a rank for a moment means no harm. Where nobody
// looked for longer than kUnseenNs, this process was stopped, too: such time does not count.
constexpr std::int64_t kStoppedNs = 10'000'000'000;
constexpr std::int64_t kUnseenNs = 100'000'000;
constexpr int kLeavingLooks = 200;  // an exit that lasts longer hangs by itself

ProcessFacts FactsOf(Process& process, bool over) {
  return !over && process.WentOn() ? ProcessFacts() : process.Look(over);
}

}  // namespace

void Job::NoteStopped(int rank, bool stopped, std::int64_t since_ns) {
  std::int64_t& stopped_ns = stopped_ns_[rank];
  if (!stopped) {
    if (std::exchange(stopped_ns, 0) >= kStoppedNs) judge_.Continued(rank);
    return;
  }
  const bool told = stopped_ns >= kStoppedNs;
  stopped_ns += std::min(since_ns, kUnseenNs);
  if (!told && stopped_ns >= kStoppedNs) judge_.Stopped(rank);
}

void Job::NoteWhetherToldToEnd(const ProcessFacts& facts) {
  if (facts.told_to_end) EndsAreNoNews();
  if (facts.ended_ticks == 0) return;
  ended_ticks_ = ended_ticks_ == 0 ? facts.ended_ticks : std::min(ended_ticks_, facts.ended_ticks);
}

// What it wrote before it ended is read first.
bool Job::IsGone(int rank, const ProcessFacts& facts, std::int64_t since_ns) {
  if (facts.cut_off || facts.state == ProcessState::kUnknown) complete_ = false;
  NoteWhetherToldToEnd(facts);
  const bool gone = complete_ && facts.state == ProcessState::kGone;
  gone_[rank] = gone ? gone_[rank] + 1 : 0;
  if (complete_ && !gone) NoteStopped(rank, facts.state == ProcessState::kStopped, since_ns);
  if (gone && facts.exited && facts.exit_code == 0) exited_.insert(rank);
  changed_ = changed_ || gone_[rank] == kStrangeLooks;
  if (gone_ns_ == 0 && gone_[rank] >= kStrangeLooks) gone_ns_ = now_ns_();
  return gone_[rank] >= kStrangeLooks && behind_.count(rank) == 0;
}

bool Job::HasFreshEnd() const {
  return std::ranges::any_of(gone_, [](const auto& each) { return each.second == 1; });
}

int Job::LooksSinceEnd() const {
  int most = 0;
  for (const auto& [rank, looks] : gone_) {
    if (!EndedWell(rank)) most = std::max(most, looks);
  }
  return most;
}

void Job::LookAgain() {
  for (const auto& [rank, process] : processes_) {
    if (gone_[rank] == 0 && process->Look(false).state == ProcessState::kGone) gone_[rank] = 1;
  }
}

void Job::LookAtProcesses(bool over) {
  const std::int64_t since_ns = now_ns_() - std::exchange(looked_ns_, now_ns_());
  std::map<int, ProcessFacts> ends;
  bool leaves = false;  // one has said that it exits, and is not gone yet
  for (const auto& [rank, process] : processes_) {
    if (!complete_) return;
    const ProcessFacts facts = FactsOf(*process, over);
    const bool gone = IsGone(rank, facts, since_ns);
    leaves = leaves || (facts.exited && !gone);
    if (gone || (over && complete_)) ends[rank] = facts;
  }
  if (HasFreshEnd()) LookAgain();
  const bool settled = over || std::ranges::all_of(gone_, [&](const auto& each) {
                         return each.second == 0 || ends.count(each.first) > 0;
                       });
  TellEnds(std::move(ends), leaves && !over, settled);
}

void Job::TellEnds(std::map<int, ProcessFacts> ends, bool held, bool settled) {
  // Who ended itself was not ended because of one that died in the same look.
  std::erase_if(ends, [this](const auto& each) {
    const auto& [rank, facts] = each;
    const bool exited = facts.exited && !WasEnded(facts);
    if (exited) judge_.Ended(rank, judge::End::kExited, facts.exit_code);
    return exited;
  });
  // A launcher ends others because of one that exits, and may be quicker than its exit.
  std::erase_if(ends,
                [&](const auto& each) { return held && gone_.at(each.first) < kLeavingLooks; });
  std::erase_if(ends, [this](const auto& each) {
    const auto& [rank, facts] = each;
    if (WasEnded(facts)) return false;
    const judge::End how = facts.quit ? judge::End::kQuit : judge::End::kDied;
    judge_.Ended(rank, how, facts.exit_code, DiedFirst(rank));
    return true;
  });
  // One that is gone, and not read to its end, may be the reason.
  if (!settled) return;
  for (const auto& [rank, facts] : ends) judge_.Ended(rank, judge::End::kDied, 0, false);
}

bool Job::WasEnded(const ProcessFacts& facts) const {
  if (facts.exited_ticks == 0) return facts.ended_ticks != 0;
  return ended_ticks_ != 0 && facts.exited_ticks > ended_ticks_;
}

// Another one that failed was seen alive after this one was seen gone. News of another host may be
// a look late.
bool Job::DiedFirst(int rank) const {
  if (gone_elsewhere_ > 0 && gone_.at(rank) <= gone_elsewhere_ + 1) return false;
  return std::all_of(gone_.begin(), gone_.end(), [&](const auto& other) {
    return other.first == rank || other.second == 0 || exited_.count(other.first) > 0 ||
           gone_.at(rank) > other.second + (several_hosts_ ? 1 : 0);
  });
}

}  // namespace lockstep::watch::run
