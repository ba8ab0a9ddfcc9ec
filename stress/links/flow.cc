// Bytes leave in order, each portion no earlier than the rule allows. The time is passed in.
#include "stress/links/flow.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

namespace lockstep::stress::links {
namespace {

// What is on the way at most: more than the bandwidth-delay product of anything that is simulated.
constexpr std::size_t kRoomBytes = 16 << 20;
// Of a slow link as a router would buffer: a tenth of a second, and no less than this.
constexpr std::size_t kSlowRoomBytes = 64 << 10;
constexpr double kSlowRoomSeconds = 0.1;
// In one turn, so that one flow cannot starve the others.
constexpr int kMostWrites = 64;

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

void Flow::SetRules(const std::map<int, LinkRule>& all, int peer) {
  std::vector<Applied> next;
  for (const auto& [id, rule] : all) {
    if (!rule.Concerns(peer, outgoing_)) continue;
    const auto known = std::ranges::find_if(
        rules_, [&](const Applied& applied) { return applied.rule.id == rule.id; });
    const std::uint64_t stream = static_cast<std::uint64_t>(peer) * 2 + (outgoing_ ? 1 : 0);
    next.push_back(known != rules_.end() ? *known
                                         : Applied{rule, Random(Mix64(rule.seed) + stream)});
    if (rule.down) touched_[id] += queued_bytes_;
  }
  rules_ = std::move(next);
  // What still waits for a fault that healed goes at once.
  if (!rules_.empty()) return;
  for (Chunk& chunk : queue_) chunk.due_ns = 0;
  last_due_ns_ = free_ns_ = 0;
}

bool Flow::down() const {
  return std::ranges::any_of(rules_, [](const Applied& a) { return a.rule.down; });
}

std::size_t Flow::RoomBytes() const {
  std::size_t room = kRoomBytes;
  for (const Applied& applied : rules_) {
    const double rate = applied.rule.rate_bytes_per_s;
    if (rate <= 0) continue;
    const auto slow = static_cast<std::size_t>(std::min(rate * kSlowRoomSeconds, 1e9));
    room = std::min(room, std::max(slow, kSlowRoomBytes));
  }
  return room;
}

std::int64_t Flow::DueOf(std::size_t bytes, std::int64_t now_ns) {
  std::int64_t due = now_ns;
  for (Applied& applied : rules_) {
    const LinkRule& rule = applied.rule;
    if (rule.rate_bytes_per_s > 0) {
      free_ns_ =
          std::max(free_ns_, now_ns) + Ns(static_cast<double>(bytes) / rule.rate_bytes_per_s);
      due = std::max(due, free_ns_);
      touched_[rule.id] += bytes;
    }
    if (rule.loss > 0) {
      const double segments = std::ceil(static_cast<double>(bytes) / kSegmentBytes);
      if (applied.random.Uniform() >= std::pow(1 - rule.loss, segments)) {
        due += Ns(kRetransmitSeconds);
        ++ledger_.lost;
        touched_[rule.id] += bytes;
      }
    }
    if (rule.delay_s > 0 || rule.jitter_s > 0) {
      due += Ns(rule.delay_s + rule.jitter_s * applied.random.Uniform());
      touched_[rule.id] += bytes;
    }
    if (rule.down) touched_[rule.id] += bytes;
  }
  last_due_ns_ = std::max(last_due_ns_, due);
  return last_due_ns_;
}

void Flow::Read(std::span<char> scratch, std::int64_t now_ns) {
  const std::size_t most = std::min({scratch.size(), kReadBytes, RoomBytes()});
  const ssize_t n = recv(from_, scratch.data(), most, MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    ended_ = broken_ = true;
    return;
  }
  if (n == 0) {
    ended_ = true;
    return Write(now_ns);
  }
  std::span<const char> rest(scratch.data(), static_cast<std::size_t>(n));
  const std::int64_t due = DueOf(rest.size(), now_ns);
  ledger_.bytes += rest.size();
  ledger_.byte_s += static_cast<double>(rest.size()) * static_cast<double>(due - now_ns) * 1e-9;
  if (rules_.empty() && queue_.empty()) rest = rest.subspan(Send(rest));
  if (rest.empty()) return;
  queue_.push_back({due, std::string(rest.begin(), rest.end())});
  queued_bytes_ += rest.size();
}

std::size_t Flow::Send(std::span<const char> bytes) {
  const ssize_t n = send(to_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno != EAGAIN && errno != EINTR) ended_ = broken_ = true;
  blocked_ = n < static_cast<ssize_t>(bytes.size());
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

void Flow::Write(std::int64_t now_ns) {
  blocked_ = false;
  if (closed_ || down() || broken_) return;
  for (int i = 0; i < kMostWrites && !queue_.empty() && !blocked_; ++i) {
    Chunk& chunk = queue_.front();
    if (chunk.due_ns > now_ns) return;
    const std::size_t sent = Send(std::span<const char>(chunk.bytes).subspan(chunk.sent));
    if (broken_) return;
    chunk.sent += sent;
    queued_bytes_ -= sent;
    if (chunk.sent == chunk.bytes.size()) queue_.pop_front();
  }
  if (!queue_.empty() || !ended_) return;
  shutdown(to_, SHUT_WR);
  closed_ = true;
}

std::optional<std::int64_t> Flow::due_ns() const {
  if (closed_ || broken_ || blocked_ || down()) return std::nullopt;
  if (!queue_.empty()) return queue_.front().due_ns;
  return ended_ ? std::optional<std::int64_t>(0) : std::nullopt;
}

std::map<int, std::uint64_t> Flow::TakeTouched() {
  std::map<int, std::uint64_t> touched;
  std::swap(touched, touched_);
  std::erase_if(touched, [](const auto& entry) { return entry.second == 0; });
  return touched;
}

}  // namespace lockstep::stress::links
