// The second look comes at least kApartNs after the first. Both must find the same ranks stuck,
// none of which wrote anything in between. A rank is looked at later in the second look than any
// rank in the first, also on other hosts: so all of them were stuck at one moment, and no clocks
// are compared. A rank that a buffering library might free must also have slept or worked in its
// call. A process that only waits for a processor proves nothing.
#include "watch/run/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "watch/events/segment.h"
#include "watch/report/name_hosts.h"
#include "watch/run/cycles.h"

namespace lockstep::watch::run {
namespace {

constexpr std::int64_t kQuietNs = 5'000'000;
constexpr std::int64_t kApartNs = 10'000'000;
constexpr std::int64_t kSoftApartNs = 300'000'000;
// Where members of a communicator called different things, what the library made of them may still
// come over a network that loses a packet or two.
constexpr std::int64_t kDifferentApartNs = 2'000'000'000;
// A stop is told after kStoppedNs: who stopped a rank for a moment means no harm. Where nobody
// looked for longer than kUnseenNs, this process was stopped, too: such time does not count.
constexpr std::int64_t kStoppedNs = 10'000'000'000;
constexpr std::int64_t kUnseenNs = 100'000'000;
constexpr std::int64_t kBetweenStacksNs = 1'000'000'000;
constexpr std::uint64_t kAtATime = 256;  // events of a rank
constexpr int kTurns = 256;              // of all ranks
constexpr std::size_t kMostStuck = 16;

ProcessFacts FactsOf(Process& process, bool over) {
  return !over && process.WentOn() ? ProcessFacts() : process.Look(over);
}

}  // namespace

Job::Job(int size, judge::Options options, bool several_hosts, std::function<std::int64_t()> now_ns)
    : size_(size),
      several_hosts_(several_hosts),
      now_ns_(std::move(now_ns)),
      judge_(
          size, [this](int rank, std::uint64_t site) { return At(rank, site); }, options),
      ends_(several_hosts) {}

bool Job::complete() const {
  return complete_ && !mixed_ && !judge_.history().smaller_groups &&
         static_cast<int>(processes_.size()) == size_;
}

std::string Job::At(int rank, std::uint64_t site) {
  const auto found = processes_.find(rank);
  return found == processes_.end() ? "?" : found->second->Line(site);
}

// Ranks of a launch are started before one of them can have ended: whoever began after that is of
// another launch, as torchrun's second attempt is.
bool Job::CanHave(const Process& process) const {
  return process.name().size == size_ && !Has(process.name().rank) &&
         (gone_ns_ == 0 || process.started_ns() <= gone_ns_);
}

// One alone is of one launch. Of another watcher's it may be told late that it is gone.
bool Job::MayBeMixedWith(const Process& process) const {
  if (size_ == 1 || !process.name().job.empty() || process.pid() == 0) return false;
  return std::ranges::any_of(processes_, [](const auto& each) {
    return each.second->pid() != 0 && each.second->Look(false).state < ProcessState::kGone;
  });
}

bool Job::IsOver() const {
  return static_cast<int>(processes_.size()) == size_ && behind_.empty() &&
         std::ranges::all_of(processes_, [this](const auto& each) {
           return ends_.LooksOf(each.first) >= kStrangeLooks;
         });
}

void Job::Add(std::unique_ptr<Process> process) {
  const int rank = process->name().rank;
  if (process->name().threads) judge_.ThreadsMayCall(rank);
  processes_[rank] = std::move(process);
  changed_ = true;
}

// A fast rank waits until the others had their turn, and what is done beside reading, too. Short
// turns also keep what the judge holds of one rank without the others small.
bool Job::Drain() {
  fresh_ = fresh_from_ring_ = 0;
  const auto drain = [this](int rank, Process& process, std::uint64_t most) {
    return process.Drain(most, [this, rank](std::span<const events::Event> events) {
      judge_.Take(rank, events);
      if (!waits_) return;
      for (const events::Event& event : events) waits_->Take(rank, event);
    });
  };
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!waits_) fresh_ += TakeCycles(processes_, judge_, drain);
    behind_.clear();
    for (auto& [rank, process] : processes_) {
      const std::uint64_t before = process->read_from_ring();
      const std::uint64_t some = drain(rank, *process, kAtATime);
      fresh_ += some;
      fresh_from_ring_ += process->read_from_ring() - before;
      if (some >= kAtATime) behind_.insert(rank);
    }
    if (behind_.empty()) break;
  }
  events_ += fresh_;
  changed_ = changed_ || fresh_ > 0;
  if (fresh_ > 0) last_event_ns_ = now_ns_();
  return fresh_ > 0;
}

bool Job::Hurries() const {
  const auto strange = [](const auto& each) { return each.second > 0; };
  if (ends_.HasGone() || std::ranges::any_of(stopped_ns_, strange)) return true;
  if (static_cast<int>(processes_.size()) < size_) return true;
  if (hung_ || ending_ || !complete_) return false;
  return !first_.ranks.empty() || (changed_ && fresh_ == 0);
}

bool Job::Floods() const {
  constexpr std::uint64_t kMany = 4 * events::kChunkEvents;
  return fresh_from_ring_ > kMany * processes_.size();
}

// Those that were seen gone would not let anybody wait.
void Job::AddEnds(std::vector<pollfd>& items) const {
  if (!complete_) return;
  for (const auto& [rank, process] : processes_) {
    if (process->end_fd() < 0 || ends_.LooksOf(rank) > 0) continue;
    items.push_back({process->end_fd(), POLLIN, 0});
  }
}

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

// What it wrote before it ended is read first.
bool Job::IsGone(int rank, const ProcessFacts& facts, std::int64_t since_ns) {
  if (facts.cut_off || facts.state == ProcessState::kUnknown) complete_ = false;
  if (facts.told_to_end) EndsAreNoNews();
  const bool gone = complete_ && facts.state == ProcessState::kGone;
  ends_.Note(rank, facts, gone);
  if (complete_ && !gone) NoteStopped(rank, facts.state == ProcessState::kStopped, since_ns);
  const int looks = ends_.LooksOf(rank);
  changed_ = changed_ || looks == kStrangeLooks;
  if (gone_ns_ == 0 && looks >= kStrangeLooks) gone_ns_ = now_ns_();
  return looks >= kStrangeLooks && behind_.count(rank) == 0;
}

int Job::LooksSinceEnd() const {
  int most = 0;
  for (const auto& [rank, process] : processes_) {
    if (!EndedWell(rank)) most = std::max(most, ends_.LooksOf(rank));
  }
  return most;
}

void Job::LookAgain() {
  for (const auto& [rank, process] : processes_) {
    if (ends_.LooksOf(rank) > 0) continue;
    const ProcessFacts facts = process->Look(false);
    if (facts.state == ProcessState::kGone) ends_.Note(rank, facts, true);
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
  if (ends_.HasFresh()) LookAgain();
  for (const RankEnds::Told& told : ends_.Tell(ends, leaves, over)) {
    if (told.was_ended) EndsAreNoNews();
    judge_.Ended(told.rank, told.how, told.code, told.first);
  }
}

Job::Look Job::LookNow(const judge::StuckRanks& stuck) {
  Look look = {now_ns_(), {}, stuck.soft, stuck.apart};
  for (const judge::Wait& wait : stuck.waits) {
    look.ranks[wait.rank] = processes_.at(wait.rank)->Look(false);
  }
  return look;
}

bool Job::Look::SameEvents(const Look& other) const {
  return std::equal(ranks.begin(), ranks.end(), other.ranks.begin(), other.ranks.end(),
                    [](const auto& mine, const auto& theirs) {
                      return mine.first == theirs.first && mine.second.begun == theirs.second.begun;
                    });
}

bool Job::Confirms(const Look& second) const {
  const bool lasts = second.soft || second.apart;  // by that it is proved
  const std::int64_t soft_ns = second.apart ? kDifferentApartNs : kSoftApartNs;
  if (second.at_ns - first_.at_ns < (lasts ? soft_ns : kApartNs)) return false;
  return std::all_of(second.ranks.begin(), second.ranks.end(), [&](const auto& each) {
    const auto& [rank, seen] = each;
    const bool there = seen.state == ProcessState::kRuns || seen.state == ProcessState::kSleeps;
    return there && processes_.at(rank)->read() == seen.begun &&
           (!lasts || seen.Waited(first_.ranks.at(rank)));
  });
}

bool Job::InGroups(const Look& look) const {
  return std::any_of(look.ranks.begin(), look.ranks.end(), [&](const auto& each) {
    return judge_.history().ranks[static_cast<std::size_t>(each.first)].in_group;
  });
}

bool Job::MainThreadsWait(const Look& second) {
  if (now_ns_() < no_stacks_until_ns_) return false;
  for (const auto& [rank, seen] : second.ranks) {
    if (!judge_.history().ranks[static_cast<std::size_t>(rank)].in_group) continue;
    const bool ran = seen.ran_ns != first_.ranks.at(rank).ran_ns;
    const bool sleeps = seen.state == ProcessState::kSleeps;
    const bool known = judge_.history().MainThreadWaits(rank);
    if (!ran && sleeps && (known || processes_.at(rank)->Python().in_torch)) continue;
    no_stacks_until_ns_ = now_ns_() + kBetweenStacksNs;
    first_ = Look();
    return false;
  }
  return true;
}

bool Job::WantsLook() const {
  if (hung_ || ending_ || !complete_ || mixed_ || static_cast<int>(processes_.size()) < size_)
    return false;
  if (!first_.ranks.empty()) return true;
  return changed_ && now_ns_() - last_event_ns_ >= kQuietNs;
}

bool Job::LookForStandstill() {
  if (!WantsLook()) return false;
  changed_ = false;
  for (const auto& [rank, process] : processes_) {
    if (process->name().threads) judge_.ThreadsLive(rank, process->Look(false).threads);
  }
  const judge::StuckRanks stuck = judge_.Standstill();
  Look second = LookNow(stuck);
  if (stuck.waits.empty() || !second.SameEvents(first_)) {
    first_ = std::move(second);
    main_threads_wait_ = false;
    return false;
  }
  if (!Confirms(second)) return false;
  if (!main_threads_wait_ && InGroups(second)) {
    // To look at them takes long: nothing may have changed in the look after that.
    main_threads_wait_ = MainThreadsWait(second);
    changed_ = changed_ || first_.ranks.empty();
    return false;
  }
  judge_.Hangs(stuck);
  judge_.EndsAreNoNews();
  hung_ = true;
  for (const judge::Wait& wait : stuck.waits) {
    hung_ranks_.push_back(wait.rank);
    if (stuck.waits.size() < 3 || stuck_.size() == kMostStuck) continue;
    stuck_.push_back(WithHosts(fmt::format("rank {} is {}", wait.rank, judge_.Describe(wait))));
  }
  return true;
}

bool Job::IsSilent(double seconds) const {
  return seconds > 0 && events_ != silent_since_ && QuietFor(seconds) && complete_ && !hung_ &&
         !ending_;
}

bool Job::LookForSilence(double seconds) {
  if (!IsSilent(seconds)) return false;
  silent_since_ = events_;
  judge_.Silent(static_cast<int>(std::lround(seconds)));
  return true;
}

std::vector<verdict::RankOutcome> Job::Hung(bool stacks) {
  std::vector<int> ranks = hung_ranks_;
  if (!hung_) {  // they are silent
    for (const auto& [rank, process] : processes_) {
      if (!judge_.history().ranks[static_cast<std::size_t>(rank)].lost) ranks.push_back(rank);
    }
  }
  std::vector<verdict::RankOutcome> hung;
  for (const int rank : ranks) {
    verdict::RankOutcome& outcome = hung.emplace_back();
    outcome.rank = rank;
    outcome.outcome = verdict::Outcome::kHung;
    if (hung.size() <= kMostStuck) outcome.where = judge_.Describe(rank);
    if (stacks) outcome.evidence = processes_.at(rank)->Stacks();
  }
  return hung;
}

std::vector<std::string> Job::Whereabouts(Deadline deadline) const {
  std::vector<std::string> ranks;
  for (const auto& [rank, process] : processes_) {
    const judge::Rank& mine = judge_.history().ranks[static_cast<std::size_t>(rank)];
    if (mine.open.empty() || ranks.size() == kMostStuck || deadline.Passed()) continue;
    ranks.push_back(WithHosts(fmt::format("rank {} is {}", rank, judge_.Describe(rank))));
  }
  return ranks;
}

void Job::Over(bool all_told) {
  do {
    Drain();
  } while (behind());
  complete_ = complete_ && all_told;
  LookAtProcesses(true);
  if (complete_) judge_.AllEnded();
}

std::vector<judge::Finding> Job::Tell() {
  std::vector<judge::Finding> findings = judge_.Tell();
  if (mixed_) findings.clear();
  for (judge::Finding& finding : findings) {
    finding.text = WithHosts(finding.text);
    finding.headline = verdict::Headline::Of(finding.text);
  }
  return findings;
}

std::string Job::WithHosts(const std::string& text) const {
  if (!several_hosts_) return text;
  return report::NameHosts(text, [this](int rank) {
    const auto found = processes_.find(rank);
    return found == processes_.end() ? std::string() : found->second->host();
  });
}

void Job::CountWaits() {
  constexpr std::size_t kTraced = 100000;
  waits_ = std::make_unique<report::Waits>(
      size_, std::max<std::size_t>(kTraced / static_cast<std::size_t>(size_), 1));
}

std::optional<results::store::Watched> Job::Waited(const report::Scale& scale) {
  if (!waits_) return std::nullopt;
  std::vector<report::RankProcess> processes(static_cast<std::size_t>(size_));
  for (const auto& [rank, process] : processes_) {
    const bool complete = !process->Look(false).cut_off;
    processes[static_cast<std::size_t>(rank)] = {process->pid(), complete};
  }
  return report::Record(*waits_, scale, processes,
                        [this](int rank, std::uint64_t site) { return At(rank, site); });
}

bool Job::EndedWell(int rank) const {
  const judge::Rank& mine = judge_.history().ranks[static_cast<std::size_t>(rank)];
  return mine.finalized || (mine.in_group && !mine.failed);
}

}  // namespace lockstep::watch::run
