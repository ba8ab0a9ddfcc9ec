#include "stress/links/socket_log.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "core/launch/sockets.h"

namespace lockstep {
namespace {

// Between two looks. What happened in between is dated by the kernel (tcp_info's last_data_sent).
constexpr double kLookSeconds = 0.004;
constexpr double kLooksPerCost = 20;
constexpr double kLongestPauseSeconds = 0.05;
constexpr std::size_t kMostEntries = 4096;

// Enough to find, at the one end, the byte that was the last to be seen at the other.
constexpr std::size_t kMostMarks = 32;

void AddMark(std::vector<ByteMark>& marks, std::uint64_t bytes, double at_s) {
  if (marks.empty()) marks.push_back({0, 0});
  const ByteMark last = marks.back();
  if (bytes <= last.bytes) return;
  if (marks.size() == kMostMarks) marks.erase(marks.begin());
  marks.push_back({bytes, last.byte_s + static_cast<double>(bytes - last.bytes) * at_s});
}

// Of the processor: on a busy machine the clock on the wall says nothing of what we cost it.
double ThreadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

void SocketBook::Note(const std::vector<TcpSocket>& seen, double now_s) {
  for (auto& [names, entry] : entries_) entry.there = false;
  for (const TcpSocket& socket : seen) {
    // Also who listens: libraries name a peer by that, when it has long ceased to.
    const std::pair names(socket.local, socket.remote);
    if (entries_.size() >= kMostEntries && !entries_.contains(names)) continue;
    Entry& entry = entries_[names];
    const TcpSocket& before = entry.socket;
    TcpSocket now = socket;
    now.arrivals = before.arrivals + (now.received > before.received ? 1 : 0);
    now.written_marks = before.written_marks;
    now.received_marks = before.received_marks;
    now.unread_byte_s = before.unread_byte_s;
    AddMark(now.written_marks, now.written, now_s - now.last_sent_ms * 1e-3);
    AddMark(now.received_marks, now.received, now_s - now.last_received_ms * 1e-3);
    if (entry.seen_s > 0) now.unread_byte_s += before.unread * (now_s - entry.seen_s);
    entry.seen_s = now_s;
    entry.there = true;
    if (now.written > before.written && now.round_trip_us > 0) {
      entry.round_trips_us += now.round_trip_us;
      ++entry.round_trips;
    }
    if (entry.round_trips > 0) {
      now.round_trip_us = static_cast<std::uint32_t>(entry.round_trips_us / entry.round_trips);
    }
    entry.socket = std::move(now);
  }
}

std::vector<TcpSocket> SocketBook::Connections() const {
  std::vector<TcpSocket> sockets;
  for (const auto& [names, entry] : entries_) {
    sockets.push_back(entry.socket);
    sockets.back().closed = !entry.there;
  }
  return sockets;
}

void SocketLog::Begin(pid_t pid, std::function<void(std::vector<TcpSocket>&)> translate) {
  End();
  book_ = SocketBook();
  ending_ = false;
  translate_ = std::move(translate);
  thread_ = std::thread([this, pid] { Run(pid); });
}

void SocketLog::End() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  thread_.join();
}

std::vector<TcpSocket> SocketLog::Connections() const {
  const std::lock_guard lock(mutex_);
  return book_.Connections();
}

void SocketLog::Run(pid_t pid) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the agent's
  while (true) {
    const double began_s = ThreadSeconds();
    std::vector<TcpSocket> seen = SocketsOf(pid);
    const std::int64_t now_ns = MonotonicNs();
    translate_(seen);
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      book_.Note(seen, static_cast<double>(now_ns) * 1e-9);
    }
    const double cost_s = ThreadSeconds() - began_s;
    const double pause_s =
        std::min(std::max(kLookSeconds, kLooksPerCost * cost_s), kLongestPauseSeconds);
    const timespec pause{0, static_cast<long>(pause_s * 1e9)};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace lockstep
