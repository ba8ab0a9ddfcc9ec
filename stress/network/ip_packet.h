// The few fields of an IPv4 packet that a wire decides by, and the answer of a firewall.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>

namespace lockstep::stress::network {

// In the byte order of this machine. Without TCP, or of a later fragment, the ports are 0.
struct IpPacket {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool tcp = false;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledged = 0;
  bool syn = false;
  bool ack = false;
  bool rst = false;
  std::uint32_t payload_bytes = 0;

  bool opens() const { return tcp && syn && !ack; }
  auto flow() const { return std::tuple(from, from_port, to, to_port); }
};

// None: no IPv4, or shorter than its headers say.
std::optional<IpPacket> ParseIpPacket(std::span<const char> bytes);

// The reset that ends the connection for the receiver of `packet`, as if its sender had sent it,
// and the one for its sender, as if the receiver had answered (RFC 9293, 3.10.7.1). Each is taken
// by a receiver that has got everything up to here; others answer with what they have got, which is
// a packet of this flow again.
std::string ResetForReceiver(const IpPacket& packet);
std::string ResetForSender(const IpPacket& packet);

}  // namespace lockstep::stress::network
