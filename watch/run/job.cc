// The second look comes at least kApartNs after the first. Both must find the same ranks stuck,
// none of which wrote anything in between. Then all of them were stuck at one moment. A rank that a
// buffering library might free must also have slept or worked in its call. A process that only
// waits for a processor proves nothing.
#include "watch/run/job.h"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/base/clock.h"
#include "watch/run/python_stacks.h"

namespace lockstep::watch::run {
namespace {

constexpr std::int64_t kQuietNs = 5'000'000;
constexpr std::int64_t kApartNs = 10'000'000;
constexpr std::int64_t kSoftApartNs = 300'000'000;
constexpr std::uint64_t kWorkedNs = 20'000'000;
constexpr std::int64_t kBetweenStacksNs = 1'000'000'000;

// The letter of /proc/PID/stat; 0: there is no such process.
char StateOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  return end == std::string::npos || end + 2 >= text.size() ? 0 : text[end + 2];
}

std::uint64_t RanNs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::uint64_t ran = 0;
  file >> ran;
  return ran;
}

}  // namespace

Job::Job(int size, SourceLines& lines, judge::Options options)
    : size_(size),
      lines_(lines),
      judge_(
          size, [this](int rank, std::uint64_t site) { return At(rank, site); }, options) {}

std::string Job::At(int rank, std::uint64_t site) {
  const auto found = readers_.find(rank);
  if (found == readers_.end()) return "?";
  if (site == 0) return LookAtPython(found->second->pid()).line;
  std::string where = lines_.At(found->second->header().maps, site);
  if (where.compare(0, 2, "0x") != 0) return where;
  // In a library that was loaded later.
  std::ifstream maps("/proc/" + std::to_string(found->second->pid()) + "/maps");
  std::stringstream text;
  text << maps.rdbuf();
  return lines_.At(text.str(), site);
}

void Job::Add(int rank, std::unique_ptr<SegmentReader> reader) {
  if (reader->header().threads.load() != 0) judge_.ThreadsMayCall(rank);
  readers_[rank] = std::move(reader);
}

bool Job::Drain() {
  std::uint64_t fresh = 0;
  for (auto& [rank, reader] : readers_) {
    const int who = rank;
    fresh += reader->Drain([&](const events::Event& event) { judge_.Take(who, event); });
    if (reader->header().stopped.load() != 0) complete_ = false;
  }
  events_ += fresh;
  if (fresh > 0) last_event_ns_ = MonotonicNs();
  return fresh > 0;
}

void Job::LookAtProcesses(bool over) {
  if (!complete_) return;
  for (const auto& [rank, reader] : readers_) {
    const char state = StateOf(reader->pid());
    const bool gone = over || state == 0 || state == 'Z' || state == 'X';
    if (!gone && state != 'T') {
      strange_[rank] = 0;
      continue;
    }
    // What it wrote before it ended is read first.
    constexpr int kLooks = 3;
    if (!over && ++strange_[rank] < kLooks) continue;
    const bool exited = reader->header().exited.load() != 0;
    judge_.Ended(rank,
                 !gone    ? judge::End::kStopped
                 : exited ? judge::End::kExited
                          : judge::End::kDied,
                 reader->header().exit_code.load());
  }
}

Job::Look Job::LookNow(const judge::StuckRanks& stuck) const {
  Look look;
  look.at_ns = MonotonicNs();
  look.soft = stuck.soft;
  for (const judge::Wait& wait : stuck.waits) {
    const SegmentReader& reader = *readers_.at(wait.rank);
    look.ranks.push_back(wait.rank);
    look.read.push_back(reader.header().head.load());
    look.ran_ns.push_back(RanNs(reader.pid()));
  }
  return look;
}

bool Job::Confirms(const Look& second) const {
  const std::int64_t apart = second.at_ns - first_.at_ns;
  if (apart < (second.soft ? kSoftApartNs : kApartNs)) return false;
  for (std::size_t each = 0; second.soft && each < second.ranks.size(); ++each) {
    const bool worked = second.ran_ns[each] - first_.ran_ns[each] >= kWorkedNs;
    if (!worked && StateOf(readers_.at(second.ranks[each])->pid()) != 'S') return false;
  }
  return true;
}

bool Job::MainThreadsWait(const Look& second) {
  if (MonotonicNs() < no_stacks_until_ns_) return false;
  for (std::size_t each = 0; each < second.ranks.size(); ++each) {
    const int rank = second.ranks[each];
    if (!judge_.history().ranks[static_cast<std::size_t>(rank)].in_group) continue;
    const pid_t process = readers_.at(rank)->pid();
    const bool ran = second.ran_ns[each] != first_.ran_ns[each];
    if (!ran && StateOf(process) == 'S' && LookAtPython(process).in_torch) continue;
    no_stacks_until_ns_ = MonotonicNs() + kBetweenStacksNs;
    first_ = Look();
    return false;
  }
  return true;
}

bool Job::LookForStandstill() {
  if (hung_ || !complete_ || static_cast<int>(readers_.size()) < size_) return false;
  if (MonotonicNs() - last_event_ns_ < kQuietNs && first_.ranks.empty()) return false;
  const judge::StuckRanks stuck = judge_.Standstill();
  Look second = LookNow(stuck);
  if (stuck.waits.empty() || second.ranks != first_.ranks || second.read != first_.read) {
    first_ = std::move(second);
    return false;
  }
  for (std::size_t each = 0; each < second.ranks.size(); ++each) {
    if (readers_.at(second.ranks[each])->read() != second.read[each]) return false;
  }
  if (!Confirms(second) || !MainThreadsWait(second)) return false;
  if (LookNow(stuck).read != second.read) return false;
  judge_.Hangs(stuck, true);
  judge_.EndsAreNoNews();
  hung_ = true;
  return true;
}

void Job::LookForSilence(int seconds) {
  const std::int64_t silent_ns = MonotonicNs() - last_event_ns_;
  if (seconds <= 0 || events_ == silent_since_ || silent_ns < seconds * 1'000'000'000LL) return;
  silent_since_ = events_;
  if (complete_ && !hung_) judge_.Silent(seconds);
}

void Job::Over() {
  Drain();
  LookAtProcesses(true);
  if (complete_) judge_.AllEnded();
}

std::vector<pid_t> Job::Processes() const {
  std::vector<pid_t> processes;
  for (const auto& [rank, reader] : readers_) processes.push_back(reader->pid());
  return processes;
}

}  // namespace lockstep::watch::run
