// Each packet gets the time at which it leaves, or none when it is lost. Everything random follows
// from a seed.
#include "stress/network/wire_queue.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cmath>

namespace lockstep::stress::network {
namespace {

// Of a slow wire as a router would buffer: a tenth of a second, and no less than this.
constexpr double kRoomSeconds = 0.1;
constexpr double kLeastRoomBytes = 64 << 10;
constexpr std::size_t kMostFlows = 65536;

std::int64_t Ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

}  // namespace

std::optional<std::uint32_t> ParseIpAddress(const std::string& text) {
  in_addr address;
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

void WireQueue::Add(const NetworkRule& rule,
                    std::set<std::pair<std::uint32_t, std::uint16_t>> spared) {
  Applied applied{rule, {}, std::move(spared), Random(Mix64(rule.seed))};
  for (const std::string& address : rule.to) {
    if (const auto parsed = ParseIpAddress(address)) applied.to.insert(*parsed);
  }
  rules_.push_back(std::move(applied));
}

void WireQueue::Remove(int rule) {
  std::erase_if(rules_, [&](const Applied& applied) { return applied.rule.id == rule; });
  if (!rules_.empty()) return;
  std::multimap<std::int64_t, Departure> now;
  for (auto& [due, departure] : queue_) now.emplace(0, std::move(departure));
  queue_ = std::move(now);
}

bool WireQueue::Concerns(const Applied& applied, const IpPacket& packet) const {
  return applied.to.contains(packet.to) &&
         !(packet.tcp && applied.spared.contains({packet.from, packet.from_port}));
}

bool WireQueue::Passes(Applied& applied, const IpPacket& packet, std::int64_t now_ns) {
  const NetworkRule& rule = applied.rule;
  if (rule.down) {
    applied.touched = true;
    return false;
  }
  if (rule.block && packet.opens() && (rule.port == 0 || packet.to_port == rule.port)) {
    applied.touched = true;
    if (rule.refuse) Put(now_ns, {ResetForSender(packet), true});
    return false;
  }
  if (!rule.reset || !packet.tcp || packet.rst) return true;
  if (packet.syn && applied.opened.size() < kMostFlows) applied.opened.insert(packet.flow());
  if (applied.opened.contains(packet.flow())) return true;
  applied.touched = true;
  Put(now_ns, {ResetForReceiver(packet), false});
  Put(now_ns, {ResetForSender(packet), true});
  return false;
}

// One packet of each 1 / loss, at a random place. Independent draws would now and then lose one
// packet again and again: TCP doubles its timer each time, and is silent beyond any deadline.
bool WireQueue::Loses(Applied& applied) {
  if (!applied.next_loss) applied.next_loss = applied.random.Uniform();
  applied.packets_due += applied.rule.loss;
  if (applied.packets_due <= *applied.next_loss) return false;
  applied.next_loss = std::floor(*applied.next_loss) + 1 + applied.random.Uniform();
  return true;
}

std::optional<std::int64_t> WireQueue::DueOf(Applied& applied, std::size_t bytes,
                                             std::int64_t at_ns) {
  const NetworkRule& rule = applied.rule;
  if (rule.loss > 0 && Loses(applied)) {
    applied.touched = true;
    return std::nullopt;
  }
  std::int64_t due = at_ns;
  if (rule.rate_bytes_per_s > 0) {
    const double room = std::max(kRoomSeconds * rule.rate_bytes_per_s, kLeastRoomBytes);
    const std::int64_t waits = std::max<std::int64_t>(0, applied.free_ns - at_ns);
    applied.touched = true;
    if (static_cast<double>(waits) * 1e-9 * rule.rate_bytes_per_s > room) return std::nullopt;
    applied.free_ns = at_ns + waits + Ns(static_cast<double>(bytes) / rule.rate_bytes_per_s);
    due = applied.free_ns;
  }
  if (rule.delay_s > 0 || rule.jitter_s > 0) {
    due += Ns(rule.delay_s + rule.jitter_s * applied.random.Uniform());
    applied.touched = true;
  }
  due = applied.last_due_ns = std::max(applied.last_due_ns, due);
  if (rule.reorder > 0 && applied.random.Uniform() < rule.reorder) {
    due += Ns(rule.reorder_s);
    applied.touched = true;
  }
  return due;
}

void WireQueue::Put(std::int64_t due_ns, Departure departure) {
  if (queue_.size() < kMostPackets) queue_.emplace(due_ns, std::move(departure));
}

void WireQueue::Take(std::span<const char> bytes, std::int64_t now_ns) {
  std::int64_t due = now_ns;
  const std::optional<IpPacket> packet = ParseIpPacket(bytes);
  for (Applied& applied : rules_) {
    if (!packet || !Concerns(applied, *packet)) continue;
    if (!Passes(applied, *packet, now_ns)) return;
    const std::optional<std::int64_t> later = DueOf(applied, bytes.size(), due);
    if (!later) return;
    due = *later;
  }
  Put(due, {std::string(bytes.begin(), bytes.end()), false});
}

std::optional<WireQueue::Departure> WireQueue::Next(std::int64_t now_ns) {
  if (queue_.empty() || queue_.begin()->first > now_ns) return std::nullopt;
  Departure departure = std::move(queue_.begin()->second);
  queue_.erase(queue_.begin());
  return departure;
}

std::optional<std::int64_t> WireQueue::due_ns() const {
  if (queue_.empty()) return std::nullopt;
  return queue_.begin()->first;
}

std::vector<int> WireQueue::TakeTouched() {
  std::vector<int> touched;
  for (Applied& applied : rules_) {
    if (!applied.touched || applied.told) continue;
    applied.told = true;
    touched.push_back(applied.rule.id);
  }
  return touched;
}

}  // namespace lockstep::stress::network
