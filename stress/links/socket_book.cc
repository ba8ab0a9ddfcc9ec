// Keeps the last counters of every socket, and of each step the two looks between which it
// happened. Of each the newest are kept, a bounded number.
#include "stress/links/socket_book.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lockstep::stress::links {
namespace {

constexpr std::size_t kMostEntries = 4096;
// Enough for a habit, and to find at the one end the byte that was the last to be seen at the
// other.
constexpr std::size_t kMostSteps = 64;
constexpr std::size_t kMostMarks = 2 * kMostSteps;

template <typename T>
void Append(std::vector<T>& items, const T& item, std::size_t most) {
  if (items.size() == most) items.erase(items.begin());
  items.push_back(item);
}

void AddStep(std::vector<verdict::ByteStep>& steps, std::uint64_t bytes, double after_s,
             const SocketBook::Look& look, const verdict::TcpSocket& socket) {
  if (!steps.empty() && bytes <= steps.back().bytes) return;
  const verdict::ByteStep step{bytes,         after_s,          look.ended_s,
                               look.waited_s, socket.limited_s, socket.round_trip_us * 1e-6};
  Append(steps, step, kMostSteps);
}

// `now` is what the ledger shows at this look, as one mark.
void AddMark(verdict::RelayLedger& ledger, const verdict::RelayLedger& now) {
  ledger.lost = now.lost;
  if (now.told.empty()) return;
  if (ledger.told.empty()) ledger.told.push_back({});
  if (now.told.back().bytes > ledger.told.back().bytes) {
    Append(ledger.told, now.told.back(), kMostMarks);
  }
}

}  // namespace

void SocketBook::Note(const std::vector<verdict::TcpSocket>& seen, const Look& look) {
  if (look.ended_s - look.began_s > verdict::kLongestLookSeconds) return;
  for (auto& [names, entry] : entries_) entry.there = false;
  for (const verdict::TcpSocket& socket : seen) NoteOne(socket, look);
}

void SocketBook::NoteOne(const verdict::TcpSocket& socket, const Look& look) {
  // Also who listens: libraries name a peer by that, when it has long ceased to.
  const std::pair names(socket.local, socket.remote);
  if (entries_.size() >= kMostEntries && !entries_.contains(names)) return;
  Entry& entry = entries_[names];
  const verdict::TcpSocket& before = entry.socket;
  // A port can be used again.
  const bool is_another = socket.written < before.written || socket.received < before.received;
  if (is_another) entry = Entry();
  verdict::TcpSocket now = socket;
  now.arrivals = before.arrivals + (now.received > before.received ? 1 : 0);
  now.waited_s = look.waited_s;
  now.written_steps = before.written_steps;
  now.received_steps = before.received_steps;
  now.out = before.out;
  now.in = before.in;
  AddMark(now.out, socket.out);
  AddMark(now.in, socket.in);
  // Of a new one it is not known how long it was there before it was found.
  AddStep(now.written_steps, now.written, entry.seen_s, look, now);
  AddStep(now.received_steps, now.received, entry.seen_s, look, now);
  entry = {std::move(now), look.began_s, true};
}

std::vector<verdict::TcpSocket> SocketBook::Connections() const {
  std::vector<verdict::TcpSocket> sockets;
  for (const auto& [names, entry] : entries_) {
    sockets.push_back(entry.socket);
    sockets.back().closed = !entry.there;
  }
  return sockets;
}

}  // namespace lockstep::stress::links
