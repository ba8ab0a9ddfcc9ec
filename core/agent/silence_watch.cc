// Two bounds of silence: a short one (quiet), after which somebody asks whether anyone can go on,
// and the deadline. Progress is what the journal shows. Of a worker that is to compute the kernel's
// figures only put the verdict off, by the time that its page faults, its files and its waits for a
// processor took. One that idles or has left is not silent, unless it is stopped.
#include "core/agent/silence_watch.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "core/base/file_text.h"
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
// No page takes longer to be given: a huge one to be cleared, or others to be reclaimed for it.
constexpr std::int64_t kLongestFaultNs = 10'000'000;
// A file that comes slower than 1 MB/s is no work.
constexpr std::int64_t kLongestByteNs = 1'000;
// CUDA's driver makes a context under locks that all processes share: with 12 of them on a GPU one
// waited for more than 5 s.
constexpr double kDriverSeconds = 30;
constexpr char kDriverLibrary[] = "/libcuda.so";

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

// It makes its context on a device, or the communicator of all ranks.
bool Starts(const SilenceWatch::LastEvent& last) {
  return !last || (!WaitsForPeers(last) && (last->phase == journal::Phase::kStart ||
                                            last->phase == journal::Phase::kConnect));
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

// From and to files, without what memory kept of them (proc(5)).
std::int64_t IoBytesOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/io", pid));
  std::string name;
  std::int64_t sum = 0;
  for (std::int64_t bytes = 0; file >> name >> bytes;) {
    if (name == "read_bytes:" || name == "write_bytes:") sum += bytes;
  }
  return sum;
}

// A worker's newest event, or its start.
Ticks BeginOf(const WorkerState& worker, const SilenceWatch::LastEvent& last) {
  return last ? std::max(last->ticks, worker.started) : worker.started;
}

}  // namespace

SilenceWatch::LastEvent SilenceWatch::Newest(const journal::JournalReader& reader) {
  LastEvent last = reader.Last();
  if (!last || last->kind != journal::EventKind::kEnqueue) return last;
  const LastEvent open = journal::OpenOperation(reader.Newest(kNearEvents));
  if (open && open->kind == journal::EventKind::kStart) last->kind = open->kind;
  return last;
}

bool SilenceWatch::HasCudaDriver(pid_t pid) { return HasMapped(pid, kDriverLibrary); }

void SilenceWatch::Begin() {
  progress_ = ProgressProbe(scale_);
  starts_on_gpu_ = false;
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
  if (quiet_since_ == last->ticks || Seen(worker, last).seconds < quiet_seconds_) return false;
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
  const double silent = Now(worker, last).seconds;
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
  progress_.Look(pid, BeginOf(worker, last), PollsOfOneWhoWaits(last, ranks_));
  const bool may_start = Starts(last) && worker.process != verdict::ProcessState::kStopped;
  starts_on_gpu_ = may_start && (starts_on_gpu_ || has_cuda_driver_(pid));
}

double SilenceWatch::AwakeSeconds(const LastEvent& last, Ticks since, double passed_s) const {
  const double kept_s = WaitsForPeers(last) ? progress_.StarvedSeconds(since)
                        : Meets(last)       ? progress_.HeldUpSeconds(since)
                                            : progress_.BusySeconds(since);
  const double known_s = awake_since_ == since ? awake_s_ : 0;
  const double awake_s = passed_s - kept_s;
  const bool in_driver = starts_on_gpu_ && Starts(last) && awake_s < kDriverSeconds;
  return std::min(in_driver ? known_s : std::max(awake_s, known_s), passed_s);
}

SilenceWatch::Silence SilenceWatch::Seen(const WorkerState& worker, const LastEvent& last) const {
  const Ticks since = BeginOf(worker, last);
  const double seconds = progress_.PassedSeconds(since, worker.death ? worker.died : NowTicks());
  const double awake_s = AwakeSeconds(last, since, seconds);
  if (WaitsForPeers(last)) return {seconds, seconds - awake_s};
  return {awake_s, 0};
}

SilenceWatch::Silence SilenceWatch::Now(const WorkerState& worker, const LastEvent& last) {
  const Silence silence = Seen(worker, last);
  if (worker.process == verdict::ProcessState::kStopped) {
    const double stopped_s = scale_.DurationNs(worker.stopped, NowTicks()) * 1e-9;
    return {std::min(silence.seconds, stopped_s), 0};
  }
  awake_since_ = BeginOf(worker, last);
  awake_s_ = silence.seconds - silence.starved_s;
  return silence;
}

void SilenceWatch::LookAgainIn(double seconds) {
  next_look_ = Deadline::AfterSeconds(std::max(seconds, 0.0) + 0.001);
}

std::int64_t ProgressProbe::SpanNs(Ticks from, Ticks to, std::int64_t to_monotonic_ns) const {
  const auto ns = static_cast<std::int64_t>(scale_.DurationNs(from, to));
  return looked_ == 0 ? ns : std::min(ns, to_monotonic_ns - looked_monotonic_ns_);
}

void ProgressProbe::Look(pid_t pid, Ticks since, std::int64_t polls) {
  if (since != since_) {
    since_ = since;
    passed_ns_ = io_ns_ = 0;
    before_ = newest_;
    at_first_.clear();
    for (Spans* spans : {&waited_ns_, &untold_ns_, &starved_ns_, &worked_ns_, &ending_ns_})
      spans->clear();
  }
  const Ticks now_ticks = NowTicks();
  const std::int64_t now_ns = MonotonicNs();
  // Of the time since the last look, what is in the silence: nobody worked longer in it.
  const std::int64_t span_ns =
      std::max<std::int64_t>(SpanNs(std::max(since, looked_), now_ticks, now_ns), 0);
  looked_ = now_ticks;
  looked_monotonic_ns_ = now_ns;
  passed_ns_ += span_ns;
  const std::int64_t io_bytes = IoBytesOf(pid);
  // Of a process that is gone there are none any more.
  io_ns_ += std::clamp<std::int64_t>(
      (io_bytes - std::exchange(io_bytes_, io_bytes)) * kLongestByteNs, 0, span_ns);
  const Threads last = std::exchange(newest_, threads_of_(pid));
  const bool is_first_look = at_first_.empty();
  for (const auto& [thread, now] : newest_) {
    const auto seen = last.find(thread);
    const Times then = seen == last.end() ? Times() : seen->second;
    // Of a time of which most was work all was: a hypervisor's share of it no process sees.
    const std::int64_t free_ns =
        std::max<std::int64_t>(span_ns - (now.waited_ns - then.waited_ns), 0);
    const std::int64_t work_ns = std::min({(now.page_faults - then.page_faults) * kLongestFaultNs,
                                           now.ran_ns - then.ran_ns, free_ns});
    worked_ns_[thread] += 2 * work_ns >= free_ns ? free_ns : work_ns;
    // The kernel tells of a wait when it ends. Who was ready to run at both looks, and had no
    // processor between them, waited all the time.
    std::int64_t& untold_ns = untold_ns_[thread];
    untold_ns = std::max<std::int64_t>(untold_ns - (now.waited_ns - then.waited_ns), 0);
    if (now.WaitsSince(then)) untold_ns += span_ns;
    waited_ns_[thread] = now.waited_ns - before_[thread].waited_ns + untold_ns;
    if (now.ending && seen != last.end() && now.runs > then.runs && host_is_short_()) {
      ending_ns_[thread] = std::max<std::int64_t>(passed_ns_ - waited_ns_[thread], 0);
    }
    // A thread that came since then has waited in the silence from its beginning.
    const auto first = at_first_.emplace(thread, is_first_look ? now : Times()).first;
    if (is_first_look) continue;
    const std::int64_t polled = now.runs - first->second.runs;
    const bool polls_only =
        polled >= polls && now.ran_ns - first->second.ran_ns < polled * kLongestPollNs;
    starved_ns_[thread] = polls_only ? 0 : now.waited_ns - first->second.waited_ns + untold_ns;
  }
}

double ProgressProbe::PassedSeconds(Ticks since, Ticks now) const {
  const bool looked = since == since_ && looked_ > since;
  const Ticks from = looked ? looked_ : since;
  const std::int64_t rest_ns = SpanNs(from, now, MonotonicNs());
  return static_cast<double>((looked ? passed_ns_ : 0) + std::max<std::int64_t>(rest_ns, 0)) * 1e-9;
}

double ProgressProbe::BusySeconds(Ticks since) const {
  if (since != since_) return 0;
  return static_cast<double>(io_ns_) * 1e-9 + LongestOf(Sum(waited_ns_, worked_ns_), since);
}

double ProgressProbe::HeldUpSeconds(Ticks since) const {
  return LongestOf(Sum(waited_ns_, ending_ns_), since);
}

ProgressProbe::Spans ProgressProbe::Sum(Spans one, const Spans& other) {
  for (const auto& [thread, ns] : other) one[thread] += ns;
  return one;
}

double ProgressProbe::LongestOf(const Spans& spans, Ticks since) const {
  std::int64_t longest_ns = 0;
  if (since != since_) return 0;
  for (const auto& [thread, ns] : spans) longest_ns = std::max(longest_ns, ns);
  return static_cast<double>(longest_ns) * 1e-9;
}

bool ProgressProbe::HostIsShort() {
  std::ifstream file("/proc/loadavg");
  std::string averages;
  long runnable = 0;
  for (int i = 0; i < 3; ++i) file >> averages;
  return file >> runnable && runnable > sysconf(_SC_NPROCESSORS_ONLN);
}

ProgressProbe::Threads ProgressProbe::ThreadsOf(pid_t pid) {
  Threads threads;
  for (const std::filesystem::path& entry : EntriesOf(fmt::format("/proc/{}/task", pid))) {
    std::ifstream file(entry / "schedstat");
    const std::optional<ProcessStat> stat = ReadStat(TextOf(entry / "stat"));
    if (!stat) continue;
    Times times{.page_faults = static_cast<std::int64_t>(stat->page_faults),
                .ready = stat->state == 'R',
                .ending = stat->ending()};
    // Where the kernel does not tell how long a thread ran, it may have run all the time.
    if (!(file >> times.ran_ns >> times.waited_ns >> times.runs)) times.ran_ns = MonotonicNs();
    threads[std::atoi(entry.filename().c_str())] = times;
  }
  return threads;
}

}  // namespace lockstep::agent
