// Two bounds of silence: a short one (quiet), after which somebody asks whether anyone can go on,
// and the deadline. A worker that idles or has left is not silent, and one that is to compute shows
// progress by page faults, or wants a processor.
#include "core/agent/silence_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include "core/base/process_stat.h"
#include "core/collective/data_type.h"

namespace lockstep::agent {
namespace {

constexpr int kLooksPerDeadline = 4;
// Newest events among which a call that has begun is looked for, behind which others are queued.
constexpr std::size_t kNearEvents = 256;
// Who computes has its processor for a time slice, which is longer than a look for news.
constexpr std::int64_t kLongestPollNs = 100'000;
// A library passes on what came in parts, in a ring up to twice a rank. No part is smaller, and
// each takes a look or two.
constexpr std::int64_t kLeastPartBytes = 4096;
constexpr std::int64_t kPollsPerPart = 10;
constexpr std::int64_t kSplitBytes = 64 << 10;

// It is in a call that ends when others come. One that is only queued has not begun: what stands
// before it in its stream is work of the rank.
bool WaitsForPeers(const SilenceWatch::LastEvent& last) {
  return last &&
         (last->kind == journal::EventKind::kStart || last->kind == journal::EventKind::kSplit);
}

// It meets its peers, or leaves them: that is work of the library, and waiting for them. Memory is
// no sign of work there, because who waits may poll.
bool Meets(const SilenceWatch::LastEvent& last) {
  return last &&
         (last->phase == journal::Phase::kConnect || last->phase == journal::Phase::kFinalize);
}

// Who looked so often in a call, and left it no more, waits for somebody: if all went on, that many
// looks were enough for every part of the data.
std::int64_t PollsOfOneWhoWaits(const SilenceWatch::LastEvent& last, std::int64_t ranks) {
  if (!WaitsForPeers(last)) return std::numeric_limits<std::int64_t>::max();
  const std::int64_t bytes = last->kind == journal::EventKind::kSplit
                                 ? kSplitBytes
                                 : last->count * collective::SizeOf(last->type);
  return kPollsPerPart * 2 * ranks * (1 + bytes / kLeastPartBytes);
}

}  // namespace

SilenceWatch::LastEvent SilenceWatch::Newest(const journal::JournalReader& reader) {
  LastEvent last = reader.Last();
  if (!last || last->kind != journal::EventKind::kEnqueue) return last;
  const LastEvent open = journal::OpenOperation(reader.Newest(kNearEvents));
  if (open && open->kind == journal::EventKind::kStart) last->kind = open->kind;
  return last;
}

void SilenceWatch::Begin() {
  progress_ = ProgressProbe();
  overdue_since_.reset();
  quiet_since_.reset();
  next_look_ = next_glance_ = Deadline::AfterNs(0);
}

int SilenceWatch::wake_ms() const {
  return (quiet_seconds_ > 0 ? next_look_.Earlier(next_glance_) : next_look_).RemainingMs();
}

bool SilenceWatch::TakeGlance() {
  if (quiet_seconds_ <= 0 || !next_glance_.Passed()) return false;
  next_glance_ = Deadline::AfterSeconds(quiet_seconds_ / 2);
  return true;
}

// Some looks in a silence, so that what is said of it holds for most of it.
bool SilenceWatch::TakeLook() {
  if (!next_look_.Passed()) return false;
  LookAgainIn(deadline_seconds_ / kLooksPerDeadline);
  return true;
}

bool SilenceWatch::IsNewlyQuiet(const WorkerState& worker, const LastEvent& last) {
  if (!last || last->kind == journal::EventKind::kIdle || last->kind == journal::EventKind::kExit)
    return false;
  if (quiet_since_ == last->ticks || Seconds(worker, last) < quiet_seconds_) return false;
  quiet_since_ = last->ticks;
  return true;
}

bool SilenceWatch::IsNewlyOverdue(pid_t pid, const WorkerState& worker, const LastEvent& last) {
  const bool excused = last && (last->kind == journal::EventKind::kExit ||
                                (last->kind == journal::EventKind::kIdle &&
                                 worker.process != verdict::ProcessState::kStopped));
  // Who leaves may be kept from a processor, too.
  if (!excused || last->kind == journal::EventKind::kExit) LookForProgress(pid, worker, last);
  if (excused) {
    overdue_since_.reset();
    return false;
  }
  const Ticks silence = last ? last->ticks : worker.started;
  const double silent = Seconds(worker, last);
  if (silent < deadline_seconds_) {
    overdue_since_.reset();
    LookAgainIn(std::min(deadline_seconds_ - silent, deadline_seconds_ / kLooksPerDeadline));
    return false;
  }
  if (overdue_since_ == silence) return false;
  overdue_since_ = silence;
  return true;
}

void SilenceWatch::LookForProgress(pid_t pid, const WorkerState& worker, const LastEvent& last) {
  progress_.Look(pid, last ? std::max(last->ticks, worker.started) : worker.started,
                 PollsOfOneWhoWaits(last, ranks_));
}

double SilenceWatch::AwakeSeconds(Ticks since, Ticks now, bool waits_for_peers) {
  const double kept_s =
      waits_for_peers ? progress_.StarvedSeconds(since) : progress_.RunDelaySeconds(since);
  const double awake_s = scale_.DurationNs(since, now) * 1e-9 - kept_s;
  const double told_s = std::exchange(awake_since_, since) == since ? awake_s_ : 0;
  return awake_s_ = std::max(awake_s, told_s);
}

SilenceWatch::Silence SilenceWatch::Now(const WorkerState& worker, const LastEvent& last) {
  Ticks since = last ? std::max(last->ticks, worker.started) : worker.started;
  const bool stopped = worker.process == verdict::ProcessState::kStopped;
  if (last && last->kind == journal::EventKind::kIdle && stopped) since = worker.stopped;
  const Ticks now = worker.death ? worker.died : NowTicks();
  const Ticks page_fault = progress_.newest_page_fault();
  const double seconds = scale_.DurationNs(since, now) * 1e-9;
  const double awake_s = std::min(AwakeSeconds(since, now, WaitsForPeers(last)), seconds);
  if (WaitsForPeers(last)) return {seconds, seconds - awake_s};
  if (!Meets(last) && page_fault > since) {
    return {std::min(scale_.DurationNs(page_fault, now) * 1e-9, awake_s), 0};
  }
  return {awake_s, 0};
}

void SilenceWatch::LookAgainIn(double seconds) {
  next_look_ = Deadline::AfterSeconds(std::max(seconds, 0.0) + 0.001);
}

void ProgressProbe::Look(pid_t pid, Ticks since, std::int64_t polls) {
  const std::uint64_t faults = StatOf(pid).value_or(ProcessStat()).page_faults;
  if (faults > page_faults_) newest_page_fault_ = NowTicks();
  page_faults_ = faults;
  if (since != since_) {
    since_ = since;
    before_ = newest_;
    at_first_.clear();
    waited_ns_.clear();
    starved_ns_.clear();
  }
  newest_ = ThreadsOf(pid);
  for (const auto& [thread, now] : newest_) {
    waited_ns_[thread] = now.waited_ns - before_[thread].waited_ns;
    const auto [first, is_first_look] = at_first_.emplace(thread, now);
    if (is_first_look) continue;
    const std::int64_t polled = now.runs - first->second.runs;
    const bool polls_only =
        polled >= polls && now.ran_ns - first->second.ran_ns < polled * kLongestPollNs;
    starved_ns_[thread] = polls_only ? 0 : now.waited_ns - first->second.waited_ns;
  }
}

double ProgressProbe::LongestOf(const Waits& waits, Ticks since) const {
  std::int64_t longest_ns = 0;
  if (since != since_) return 0;
  for (const auto& [thread, ns] : waits) longest_ns = std::max(longest_ns, ns);
  return static_cast<double>(longest_ns) * 1e-9;
}

ProgressProbe::Threads ProgressProbe::ThreadsOf(pid_t pid) {
  Threads threads;
  std::error_code gone;
  for (const auto& entry :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream file(entry.path() / "schedstat");
    Times times;
    if (!(file >> times.ran_ns >> times.waited_ns >> times.runs)) continue;
    threads[std::atoi(entry.path().filename().c_str())] = times;
  }
  return threads;
}

}  // namespace lockstep::agent
