// Segments are read with pread and never mapped: a page of a mapping that has no memory yet would
// take some, and a full /dev/shm would end this process. The watcher keeps the newest chunk of
// events and more, so the call that a rank is in is found however long it lasts. A rank may end at
// any moment: then its file or its process is gone, and its row says so or is left out.
#include "watch/status/jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/process_stat.h"
#include "watch/events/segment.h"
#include "watch/events/ticks.h"
#include "watch/run/stacks/source_lines.h"
#include "watch/run/watcher_file.h"

namespace lockstep::watch::status {
namespace {

namespace fs = std::filesystem;
using events::Header;

constexpr auto kApart = std::chrono::milliseconds(20);
constexpr std::uint64_t kMostEvents = 2 * events::kChunkEvents;

class Segment {
 public:
  explicit Segment(const fs::path& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~Segment() {
    if (file_ >= 0) close(file_);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // False where it is no segment, or not ready.
  bool ReadHeader() {
    struct stat facts;
    const bool whole = file_ >= 0 && fstat(file_, &facts) == 0 &&
                       facts.st_size == static_cast<off_t>(events::kSegmentBytes);
    return whole &&
           pread(file_, static_cast<void*>(&header_), sizeof header_, 0) ==
               static_cast<ssize_t>(sizeof header_) &&
           header_.magic.load() == events::kMagic;
  }
  const Header& header() const { return header_; }

  // What the watcher has read the writer uses again at any time, also meanwhile.
  std::vector<Event> NewestEvents() {
    const std::uint64_t head =
        std::min(header_.head.load(), header_.ready.load() * events::kChunkEvents);
    const std::uint64_t first = head > kMostEvents ? head - kMostEvents : 0;
    std::vector<Event> found;
    for (std::uint64_t at = first; at < head;) {
      std::vector<Event> some(
          std::min(head - at, events::kChunkEvents - at % events::kChunkEvents));
      const ssize_t bytes = pread(file_, some.data(), some.size() * sizeof(Event),
                                  static_cast<off_t>(events::OffsetOf(header_, at)));
      if (bytes != static_cast<ssize_t>(some.size() * sizeof(Event))) break;
      found.insert(found.end(), some.begin(), some.end());
      at += some.size();
    }
    const std::uint64_t used_again = ReadHeader() ? header_.tail.load() : head;
    const std::uint64_t gone = used_again > first ? used_again - first : 0;
    found.erase(found.begin(),
                found.begin() + static_cast<std::ptrdiff_t>(std::min(gone, found.size())));
    return found;
  }

 private:
  int file_;
  Header header_;
};

std::string StateOf(const Header& header) {
  const std::optional<ProcessStat> stat = StatOf(header.pid);
  const bool same = stat && (header.started == 0 || stat->started == header.started);
  if (!same || stat->state == 'Z' || stat->state == 'X') return "ended";
  if (stat->state == 'T' || stat->state == 't') return "stopped";
  return stat->state == 'R' ? "running" : "sleeping";
}

// A look that begins before the pause and ends after it.
class Looker {
 public:
  Looker() : began_ticks_(events::NowTicks()), began_ns_(MonotonicNs()) {
    for (run::WatcherFile& watcher : run::LiveWatchers()) {
      std::error_code error;
      fs::directory_iterator entries(watcher.folder, error);
      for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
        if (entries->path().extension() != events::kSuffix) continue;
        auto segment = std::make_unique<Segment>(entries->path());
        if (!segment->ReadHeader()) continue;
        const std::uint64_t polls = segment->header().polls.load();
        segments_.push_back({watcher, std::move(segment), polls});
      }
    }
  }

  std::vector<JobNow> Look() {
    if (segments_.empty()) return {};
    std::this_thread::sleep_for(kApart);
    now_ticks_ = events::NowTicks();
    seconds_per_tick_ = static_cast<double>(MonotonicNs() - began_ns_) * 1e-9 /
                        static_cast<double>(std::max<std::uint64_t>(now_ticks_ - began_ticks_, 1));
    std::map<std::pair<pid_t, std::string>, JobNow> jobs;
    for (Found& found : segments_) {
      if (!found.segment->ReadHeader()) continue;
      const Header& header = found.segment->header();
      JobNow& job = jobs[{found.watcher.pid, header.job}];
      job.name = header.job;
      job.watcher = found.watcher.pid;
      job.command = fmt::format("{}", fmt::join(found.watcher.command, " "));
      job.size = std::max(job.size, header.size.load());
      job.ranks.push_back(RankOf(found));
    }
    std::vector<JobNow> alive;
    for (auto& [key, job] : jobs) {
      Tidy(job);
      if (!job.ranks.empty()) alive.push_back(std::move(job));
    }
    return alive;
  }

 private:
  struct Found {
    run::WatcherFile watcher;
    std::unique_ptr<Segment> segment;
    std::uint64_t polls = 0;
  };

  std::string Line(const Header& header, std::uint64_t site) {
    return site == 0 ? "" : run::stacks::LineOf(lines_, header.maps, header.pid, site);
  }

  double SecondsSince(std::uint64_t ticks) const {
    return ticks > now_ticks_ ? 0 : static_cast<double>(now_ticks_ - ticks) * seconds_per_tick_;
  }

  RankNow RankOf(const Found& found) {
    const Header& header = found.segment->header();
    RankNow rank;
    const int known = header.rank.load();
    rank.rank = known >= 0 ? known : header.launcher_rank;
    rank.pid = header.pid;
    rank.state = StateOf(header);
    rank.events = header.head.load() + header.counted.load();
    rank.watched = header.stopped.load() == 0;
    if (rank.state == "ended") {
      if (header.exited.load() != 0) rank.exit_code = header.exit_code.load();
      return rank;
    }
    if (!rank.watched) return rank;
    rank.polls = header.polls.load() > found.polls;
    if (rank.polls) {
      rank.poll_call = header.poll_call.load();
      rank.poll_site = Line(header, header.poll_site.load());
    }
    const std::vector<Event> newest = found.segment->NewestEvents();
    const bool counts = !newest.empty() && newest.back().phase == events::Phase::kAgain;
    if (counts) rank.events += static_cast<std::uint64_t>(newest.back().count);
    AddCalls(header, WhereNow(newest), rank);
    return rank;
  }

  void AddCalls(const Header& header, const std::vector<ThreadNow>& threads, RankNow& rank) {
    const ThreadNow* newest = nullptr;
    for (const ThreadNow& thread : threads) {
      if (newest == nullptr || thread.since > newest->since) newest = &thread;
      if (!thread.inside) continue;
      rank.calls.push_back({thread, SecondsSince(thread.since), Line(header, thread.call.site)});
    }
    if (rank.calls.empty() && newest != nullptr) {
      rank.calls.push_back({*newest, SecondsSince(newest->since), ""});
    }
  }

  // An earlier launch of the same name leaves ranks that ended.
  static void Tidy(JobNow& job) {
    std::set<int> alive;
    for (const RankNow& rank : job.ranks) {
      if (rank.state != "ended") alive.insert(rank.rank);
    }
    std::erase_if(job.ranks, [&](const RankNow& rank) {
      return rank.state == "ended" && (alive.empty() || alive.count(rank.rank) > 0);
    });
    std::ranges::stable_sort(job.ranks, {}, &RankNow::rank);
  }

  run::stacks::SourceLines lines_;
  std::vector<Found> segments_;
  std::uint64_t began_ticks_;
  std::int64_t began_ns_;
  std::uint64_t now_ticks_ = 0;
  double seconds_per_tick_ = 0;
};

}  // namespace

std::vector<JobNow> LookAtJobs() { return Looker().Look(); }

}  // namespace lockstep::watch::status
