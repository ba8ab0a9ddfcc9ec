// What becomes of packets on a bad wire: pure, with the time passed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "stress/network/ip_packet.h"
#include "stress/network/network_rule.h"

namespace lockstep::stress::network {

class WireQueue {
 public:
  struct Departure {
    std::string bytes;
    bool back = false;  // to this host itself: the answer of a firewall
  };

  // `spared`: "ADDRESS:PORT" of this host, whose packets meet no rule.
  void Add(const NetworkRule& rule, std::set<std::pair<std::uint32_t, std::uint16_t>> spared);
  // What still waits for it goes at once.
  void Remove(int rule);
  bool empty() const { return rules_.empty(); }

  void Take(std::span<const char> bytes, std::int64_t now_ns);
  // The next one that is due.
  std::optional<Departure> Next(std::int64_t now_ns);
  // When one is due; none: nothing waits.
  std::optional<std::int64_t> due_ns() const;
  // The rules that met a packet for the first time since this was asked last.
  std::vector<int> TakeTouched();

  static constexpr std::size_t kMostPackets = 16384;

 private:
  using Flow = std::tuple<std::uint32_t, std::uint16_t, std::uint32_t, std::uint16_t>;
  struct Applied {
    NetworkRule rule;
    std::set<std::uint32_t> to;
    std::set<std::pair<std::uint32_t, std::uint16_t>> spared;
    Random random;
    std::set<Flow> opened = {};  // connections that are newer than the rule
    double packets_due = 0;      // to be lost: loss times how many came
    std::optional<double> next_loss =
        {};                        // one is lost when packets_due passes it; none: not drawn
    std::int64_t free_ns = 0;      // when the wire has passed on what it was given, at its rate
    std::int64_t last_due_ns = 0;  // no packet that keeps its order leaves before
    bool touched = false;
    bool told = false;
  };
  bool Concerns(const Applied& applied, const IpPacket& packet) const;
  // Whether the packet goes on; what answers it is queued.
  bool Passes(Applied& applied, const IpPacket& packet, std::int64_t now_ns);
  static bool Loses(Applied& applied);
  // None: it is lost, or the wire has no room for it.
  std::optional<std::int64_t> DueOf(Applied& applied, std::size_t bytes, std::int64_t at_ns);
  void Put(std::int64_t due_ns, Departure departure);

  std::vector<Applied> rules_;
  std::multimap<std::int64_t, Departure>
      queue_;  // equal ones leave in the order in which they came
};

// "10.77.0.2" in the byte order of this machine.
std::optional<std::uint32_t> ParseIpAddress(const std::string& text);

}  // namespace lockstep::stress::network
