// The kernel lists the TCP sockets of a host by inode (sock_diag(7)), and /proc says which inodes a
// process has open. The two together are the sockets of a process, with the kernel's counters.
#include "core/agent/sockets.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
// Newer than libc's <netinet/tcp.h>: bytes_sent, notsent_bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "core/base/fd.h"
#include "core/base/process_stat.h"

namespace lockstep::agent {
namespace {

// States of include/net/tcp_states.h.
constexpr std::uint8_t kListen = 10;
constexpr std::uint8_t kTimeWait = 6;
constexpr std::uint8_t kSynReceived = 3;
constexpr std::uint8_t kNewSynReceived = 12;
// Newer kernels list also sockets that only have an address. They are not found by their names.
constexpr std::uint8_t kBoundInactive = 13;
constexpr std::size_t kAnswerBytes = 64 << 10;
// Of a machine with very many sockets: what lies beyond is not looked at.
constexpr int kMostAnswers = 1024;

std::string Format4(in_addr address, std::uint16_t port) {
  char text[INET_ADDRSTRLEN];
  inet_ntop(AF_INET, &address, text, sizeof text);
  const bool loopback = (ntohl(address.s_addr) >> 24) == 127;
  return loopback ? fmt::format("{}:{}%{}", text, port, HostName())
                  : fmt::format("{}:{}", text, port);
}

std::string Format6(const in6_addr& address, std::uint16_t port) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr inner;
    std::memcpy(&inner, address.s6_addr + 12, sizeof inner);
    return Format4(inner, port);
  }
  char text[INET6_ADDRSTRLEN];
  inet_ntop(AF_INET6, &address, text, sizeof text);
  return IN6_IS_ADDR_LOOPBACK(&address) ? fmt::format("[{}]:{}%{}", text, port, HostName())
                                        : fmt::format("[{}]:{}", text, port);
}

std::string FormatDiag(std::uint8_t family, const __be32* address, __be16 port) {
  if (family == AF_INET) {
    in_addr four;
    std::memcpy(&four, address, sizeof four);
    return Format4(four, ntohs(port));
  }
  in6_addr six;
  std::memcpy(&six, address, sizeof six);
  return Format6(six, ntohs(port));
}

bool IsAnyAddress(const inet_diag_msg& message) {
  const __be32* const a = message.id.idiag_src;
  return message.idiag_family == AF_INET ? a[0] == 0 : (a[0] | a[1] | a[2] | a[3]) == 0;
}

// A descriptor of each socket of the process, by the socket's inode number.
using Inodes = std::map<std::uint32_t, std::string>;
Inodes InodesOf(pid_t pid) {
  Inodes inodes;
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  for (const int fd : NumbersIn(folder)) {
    char target[64] = {};
    unsigned inode = 0;
    std::string path = fmt::format("{}/{}", folder, fd);
    if (readlink(path.c_str(), target, sizeof target - 1) > 0 &&
        std::sscanf(target, "socket:[%u]", &inode) == 1) {
      inodes.emplace(inode, std::move(path));
    }
  }
  return inodes;
}

// "TCP", "TCPv6", "UNIX-STREAM". Also where the kernel does not say it may be one.
bool MayBeTcp(const std::string& descriptor) {
  char name[16] = {};
  const ssize_t n = getxattr(descriptor.c_str(), "system.sockprotoname", name, sizeof name - 1);
  return n <= 0 || std::string_view(name).starts_with("TCP");
}

void AddListener(const inet_diag_msg& message, std::vector<TcpSocket>& sockets) {
  const std::uint16_t port = ntohs(message.id.idiag_sport);
  const auto add = [&](std::string local) {
    sockets.push_back({.local = std::move(local), .unread = message.idiag_rqueue});
  };
  if (!IsAnyAddress(message)) {
    return add(FormatDiag(message.idiag_family, message.id.idiag_src, message.id.idiag_sport));
  }
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET) {
      add(Format4(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, port));
    } else if (family == AF_INET6 && message.idiag_family == AF_INET6) {
      add(Format6(reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, port));
    }
  }
  freeifaddrs(all);
}

TcpSocket SocketFrom(const nlmsghdr& header) {
  const auto& message = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
  TcpSocket socket;
  socket.local = FormatDiag(message.idiag_family, message.id.idiag_src, message.id.idiag_sport);
  socket.remote = FormatDiag(message.idiag_family, message.id.idiag_dst, message.id.idiag_dport);
  socket.unread = message.idiag_rqueue;
  auto rest = static_cast<int>(header.nlmsg_len - NLMSG_LENGTH(sizeof message));
  const auto* attribute = reinterpret_cast<const rtattr*>(&message + 1);
  for (; RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    tcp_info info{};
    std::memcpy(&info, RTA_DATA(attribute),
                std::min<std::size_t>(sizeof info, RTA_PAYLOAD(attribute)));
    socket.written = info.tcpi_bytes_sent - info.tcpi_bytes_retrans + info.tcpi_notsent_bytes;
    socket.received = info.tcpi_bytes_received;
    // What was sent again too early the receiver had already, and says so.
    socket.retransmits =
        info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups);
    socket.limited_s = static_cast<double>(info.tcpi_rwnd_limited) * 1e-6;
    socket.round_trip_us = info.tcpi_rtt;
    socket.least_round_trip_us = info.tcpi_min_rtt;
    socket.last_received_ms = info.tcpi_last_data_recv;
  }
  return socket;
}

// What names a socket to the kernel, its cookie included: a port that is used again is another.
struct SocketName {
  std::uint8_t family;
  inet_diag_sockid id;
  std::uint32_t inode;  // another one, or none, when the process has closed it
};

// What a walk of the kernel's table finds of a process.
struct Walk {
  Inodes missing;  // not met yet: what is no TCP socket, or is neither connected nor listens
  std::vector<TcpSocket> sockets;
  std::vector<SocketName> names;  // of those that do not listen
};

void Add(const nlmsghdr& header, Walk& walk) {
  const auto& message = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
  if (walk.missing.erase(message.idiag_inode) == 0 || walk.sockets.size() >= kMostSockets) return;
  if (message.idiag_state == kListen) return AddListener(message, walk.sockets);
  walk.sockets.push_back(SocketFrom(header));
  walk.names.push_back({message.idiag_family, message.id, message.idiag_inode});
}

constexpr std::uint32_t kStates =
    ~((1u << kTimeWait) | (1u << kSynReceived) | (1u << kNewSynReceived) | (1u << kBoundInactive));
constexpr std::uint8_t kExtensions = 1 << (INET_DIAG_INFO - 1);

template <typename Request>
bool Ask(int fd, std::uint16_t type, std::uint16_t flags, const Request& request) {
  struct {
    nlmsghdr header;
    Request request;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = type;
  ask.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  ask.request = request;
  return send(fd, &ask, sizeof ask, 0) == sizeof ask;
}

// The older request is for both families, so that the kernel walks its table once.
bool AskForAll(int fd) {
  inet_diag_req request{};
  request.idiag_ext = kExtensions;
  request.idiag_states = kStates;
  return Ask(fd, TCPDIAG_GETSOCK, NLM_F_DUMP, request);
}

bool AskForOne(int fd, const SocketName& name) {
  inet_diag_req_v2 request{};
  request.sdiag_family = name.family;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_ext = kExtensions;
  request.idiag_states = kStates;
  request.id = name.id;
  return Ask(fd, SOCK_DIAG_BY_FAMILY, 0, request);
}

void Read(int fd, Walk& walk) {
  alignas(nlmsghdr) char answer[kAnswerBytes];
  for (int i = 0; i < kMostAnswers; ++i) {
    // A dump is made while it is read: the kernel never lets one wait.
    const ssize_t bytes = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
    if (bytes <= 0) return;
    auto rest = static_cast<unsigned>(bytes);
    for (auto* header = reinterpret_cast<nlmsghdr*>(answer); NLMSG_OK(header, rest);
         header = NLMSG_NEXT(header, rest)) {
      if (header->nlmsg_type != TCPDIAG_GETSOCK) return;  // done, or an error
      Add(*header, walk);
    }
  }
}

Walk FindSockets(Inodes inodes) {
  Walk walk{.missing = std::move(inodes), .sockets = {}, .names = {}};
  if (walk.missing.empty()) return walk;
  const Fd fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (fd.valid() && AskForAll(fd.get())) Read(fd.get(), walk);
  return walk;
}

// None when it is gone.
std::optional<TcpSocket> LookAtOne(int fd, const SocketName& name) {
  alignas(nlmsghdr) char answer[4096];
  if (!AskForOne(fd, name)) return std::nullopt;
  const ssize_t bytes = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
  if (bytes <= 0) return std::nullopt;
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  const bool is_it =
      NLMSG_OK(header, static_cast<unsigned>(bytes)) && header->nlmsg_type == SOCK_DIAG_BY_FAMILY;
  if (!is_it) return std::nullopt;
  const auto& message = *static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  return message.idiag_inode == name.inode ? std::optional(SocketFrom(*header)) : std::nullopt;
}

}  // namespace

struct SocketLooks::Found {
  Inodes inodes;
  std::vector<TcpSocket> listeners;
  std::vector<SocketName> names;
  bool incomplete = true;  // a socket has not listened or connected yet, or is gone
  Fd netlink = Fd(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
};

SocketLooks::SocketLooks(pid_t pid, int least_gap, int most_gap)
    : pid_(pid),
      least_gap_(least_gap),
      most_gap_(most_gap),
      looks_(most_gap),
      found_(std::make_unique<Found>()) {}
SocketLooks::~SocketLooks() = default;

std::vector<TcpSocket> SocketLooks::Look() {
  ++looks_;
  if (looks_ >= most_gap_) return Search();
  if (looks_ < least_gap_) return LookAtFound();
  return found_->incomplete || InodesOf(pid_) != found_->inodes ? Search() : LookAtFound();
}

std::vector<TcpSocket> SocketLooks::Search() {
  looks_ = 0;
  found_->inodes = InodesOf(pid_);
  Walk walk = FindSockets(found_->inodes);
  found_->incomplete = std::ranges::any_of(std::views::values(walk.missing), MayBeTcp);
  found_->names = std::move(walk.names);
  found_->listeners = walk.sockets;
  std::erase_if(found_->listeners, [](const TcpSocket& one) { return !one.remote.empty(); });
  return std::move(walk.sockets);
}

std::vector<TcpSocket> SocketLooks::LookAtFound() {
  std::vector<TcpSocket> sockets = found_->listeners;
  std::erase_if(found_->names, [&](const SocketName& name) {
    std::optional<TcpSocket> seen = LookAtOne(found_->netlink.get(), name);
    found_->incomplete = found_->incomplete || !seen;
    if (seen) sockets.push_back(std::move(*seen));
    return !seen;
  });
  return sockets;
}

std::string FormatAddress(const void* address) {
  sa_family_t family;
  std::memcpy(&family, address, sizeof family);
  if (family == AF_INET) {
    const auto& four = *static_cast<const sockaddr_in*>(address);
    return Format4(four.sin_addr, ntohs(four.sin_port));
  }
  const auto& six = *static_cast<const sockaddr_in6*>(address);
  return Format6(six.sin6_addr, ntohs(six.sin6_port));
}

std::vector<TcpSocket> SocketsOf(pid_t pid) { return FindSockets(InodesOf(pid)).sockets; }

}  // namespace lockstep::agent
