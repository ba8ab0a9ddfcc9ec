// Reads addresses and ports of an IPv4 packet, and makes the RST that refuses a connection. A
// packet that is cut short has none.
#include "stress/network/ip_packet.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <cstring>

namespace lockstep::stress::network {
namespace {

constexpr std::uint16_t kFragmentOffset = 0x1fff;
constexpr std::uint8_t kTimeToLive = 64;

// RFC 1071.
std::uint16_t Checksum(std::span<const char> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    std::uint16_t word;
    std::memcpy(&word, &bytes[i], sizeof word);
    sum += word;
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

struct PseudoHeader {
  std::uint32_t from, to;
  std::uint8_t zero = 0, protocol = IPPROTO_TCP;
  std::uint16_t length = 0;
};

std::string Reset(const IpPacket& ends, std::uint32_t sequence, std::uint32_t acknowledged) {
  iphdr ip{};
  tcphdr tcp{};
  ip.version = 4;
  ip.ihl = sizeof ip / 4;
  ip.ttl = kTimeToLive;
  ip.protocol = IPPROTO_TCP;
  ip.tot_len = htons(sizeof ip + sizeof tcp);
  ip.saddr = htonl(ends.from);
  ip.daddr = htonl(ends.to);
  tcp.source = htons(ends.from_port);
  tcp.dest = htons(ends.to_port);
  tcp.seq = htonl(sequence);
  tcp.ack_seq = htonl(acknowledged);
  tcp.doff = sizeof tcp / 4;
  tcp.rst = tcp.ack = 1;
  std::string bytes(sizeof ip + sizeof tcp, '\0');
  std::memcpy(bytes.data(), &ip, sizeof ip);
  ip.check = Checksum(std::span(bytes).first(sizeof ip));
  const PseudoHeader pseudo{ip.saddr, ip.daddr, 0, IPPROTO_TCP, htons(sizeof tcp)};
  std::string summed(sizeof pseudo + sizeof tcp, '\0');
  std::memcpy(summed.data(), &pseudo, sizeof pseudo);
  std::memcpy(summed.data() + sizeof pseudo, &tcp, sizeof tcp);
  tcp.check = Checksum(summed);
  std::memcpy(bytes.data(), &ip, sizeof ip);
  std::memcpy(bytes.data() + sizeof ip, &tcp, sizeof tcp);
  return bytes;
}

}  // namespace

std::optional<IpPacket> ParseIpPacket(std::span<const char> bytes) {
  iphdr ip;
  if (bytes.size() < sizeof ip) return std::nullopt;
  std::memcpy(&ip, bytes.data(), sizeof ip);
  const std::size_t header = std::size_t{ip.ihl} * 4;
  const std::size_t length = ntohs(ip.tot_len);
  if (ip.version != 4 || header < sizeof ip || length < header || bytes.size() < length) {
    return std::nullopt;
  }
  IpPacket packet{.from = ntohl(ip.saddr), .to = ntohl(ip.daddr)};
  if (ip.protocol != IPPROTO_TCP || (ntohs(ip.frag_off) & kFragmentOffset) != 0) return packet;
  tcphdr tcp;
  if (length < header + sizeof tcp) return std::nullopt;
  std::memcpy(&tcp, bytes.data() + header, sizeof tcp);
  const std::size_t data = header + std::size_t{tcp.doff} * 4;
  if (data < header + sizeof tcp || data > length) return std::nullopt;
  packet.tcp = true;
  packet.from_port = ntohs(tcp.source);
  packet.to_port = ntohs(tcp.dest);
  packet.sequence = ntohl(tcp.seq);
  packet.acknowledged = ntohl(tcp.ack_seq);
  packet.syn = tcp.syn != 0;
  packet.ack = tcp.ack != 0;
  packet.rst = tcp.rst != 0;
  packet.payload_bytes = static_cast<std::uint32_t>(length - data);
  return packet;
}

std::string ResetForReceiver(const IpPacket& packet) {
  return Reset(packet, packet.sequence, packet.acknowledged);
}

std::string ResetForSender(const IpPacket& packet) {
  IpPacket back = packet;
  std::swap(back.from, back.to);
  std::swap(back.from_port, back.to_port);
  // Of a connection that is only asked for, the acknowledgement alone counts.
  return Reset(back, packet.ack ? packet.acknowledged : 0,
               packet.sequence + packet.payload_bytes + (packet.syn ? 1 : 0));
}

}  // namespace lockstep::stress::network
