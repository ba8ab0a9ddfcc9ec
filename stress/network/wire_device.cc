// Makes the TUN device and its routes, reads packets from it, and sends them on by the interface
// that was the way before. The kernel is asked for routes, and told them, with one message of
// rtnetlink(7) each and a deadline.
#include "stress/network/wire_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>

namespace lockstep::stress::network {
namespace {

// IPv4 addresses are in the byte order of this machine; interfaces are indices.
struct Route {
  int interface = 0;
  std::uint32_t source = 0;  // the address that packets get that have none
};

constexpr std::uint8_t kHostBits = 32;
constexpr std::size_t kAnswerBytes = 32 << 10;

// One request: a header, the message of its type, attributes.
template <typename Message>
struct Request {
  nlmsghdr header{};
  Message message{};
  alignas(NLMSG_ALIGNTO) char attributes[256] = {};

  Request(std::uint16_t type, std::uint16_t flags) {
    header.nlmsg_len = NLMSG_LENGTH(sizeof message);
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  }
  void Add(std::uint16_t type, std::uint32_t value) {
    auto* const at = reinterpret_cast<rtattr*>(reinterpret_cast<char*>(this) + header.nlmsg_len);
    at->rta_type = type;
    at->rta_len = RTA_LENGTH(sizeof value);
    std::memcpy(RTA_DATA(at), &value, sizeof value);
    header.nlmsg_len += RTA_SPACE(sizeof value);
  }
};

std::string AddressText(std::uint32_t address) {
  const in_addr net{htonl(address)};
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &net, text, sizeof text);
}

// Calls `read` with the header of the answer, and with each of its attributes, which begin behind
// `skip` bytes. An error of the kernel is returned as errno, 0 is success.
int Ask(const void* request, std::size_t bytes, std::size_t skip,
        const std::function<void(const rtattr&)>& read) {
  const Fd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  const timeval second{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  if (!fd.valid() || send(fd.get(), request, bytes, 0) < 0) return errno;
  alignas(nlmsghdr) char answer[kAnswerBytes];
  const ssize_t got = recv(fd.get(), answer, sizeof answer, 0);
  if (got < 0) return errno;
  const auto* const header = reinterpret_cast<const nlmsghdr*>(answer);
  if (!NLMSG_OK(header, static_cast<unsigned>(got))) return EPROTO;
  if (header->nlmsg_type == NLMSG_ERROR) {
    return -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error;
  }
  auto rest = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(skip));
  const auto* attribute = reinterpret_cast<const rtattr*>(answer + NLMSG_LENGTH(skip));
  for (; RTA_OK(attribute, rest); attribute = RTA_NEXT(attribute, rest)) read(*attribute);
  return 0;
}

std::uint32_t NumberIn(const rtattr& attribute) {
  std::uint32_t value = 0;
  std::memcpy(&value, RTA_DATA(&attribute), sizeof value);
  return value;
}

// kEnvironment in one line, each.
Result<Route> RouteTo(std::uint32_t address) {
  Request<rtmsg> request(RTM_GETROUTE, 0);
  request.message.rtm_family = AF_INET;
  request.message.rtm_dst_len = kHostBits;
  request.Add(RTA_DST, htonl(address));
  Route route;
  const int error =
      Ask(&request, request.header.nlmsg_len, sizeof(rtmsg), [&](const rtattr& attribute) {
        if (attribute.rta_type == RTA_OIF) route.interface = static_cast<int>(NumberIn(attribute));
        if (attribute.rta_type == RTA_PREFSRC) route.source = ntohl(NumberIn(attribute));
      });
  if (error == 0 && route.interface != 0) return route;
  return EnvironmentError("there is no route to {}: {}", AddressText(address),
                          std::strerror(error));
}

Status AddRoute(std::uint32_t address, const Route& route) {
  Request<rtmsg> request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
  request.message.rtm_family = AF_INET;
  request.message.rtm_dst_len = kHostBits;
  request.message.rtm_table = RT_TABLE_MAIN;
  request.message.rtm_protocol = RTPROT_STATIC;
  request.message.rtm_scope = RT_SCOPE_LINK;
  request.message.rtm_type = RTN_UNICAST;
  request.Add(RTA_DST, htonl(address));
  request.Add(RTA_OIF, static_cast<std::uint32_t>(route.interface));
  if (route.source != 0) request.Add(RTA_PREFSRC, htonl(route.source));
  const int error = Ask(&request, request.header.nlmsg_len, 0, [](const rtattr&) {});
  if (error == 0) return OkStatus();
  return EnvironmentError(
      "no route to {} over a wire: {}{}", AddressText(address), std::strerror(error),
      error == EEXIST ? "; does another agent of this host interfere with the same address?" : "");
}

// Empty: it has none.
Result<std::string> AliasOf(int interface) {
  Request<ifinfomsg> request(RTM_GETLINK, 0);
  request.message.ifi_index = interface;
  std::string alias;
  const int error =
      Ask(&request, request.header.nlmsg_len, sizeof(ifinfomsg), [&](const rtattr& attribute) {
        if (attribute.rta_type != IFLA_IFALIAS) return;
        const auto* const text = static_cast<const char*>(RTA_DATA(&attribute));
        alias.assign(text, strnlen(text, RTA_PAYLOAD(&attribute)));
      });
  if (error == 0) return alias;
  return EnvironmentError("interface {} cannot be looked at: {}", interface, std::strerror(error));
}

constexpr char kNamePattern[] = "lswire%d";

std::string NameOf(int interface) {
  char name[IF_NAMESIZE] = {};
  return if_indextoname(static_cast<unsigned>(interface), name) != nullptr ? name : "?";
}

Status NoDevice(const char* what) {
  const int error = errno;
  return EnvironmentError(
      "{}: {}; faults of the network need TUN devices (/dev/net/tun) and CAP_NET_ADMIN and "
      "CAP_NET_RAW in this network namespace",
      what, std::strerror(error));
}

// A strict filter of reverse paths drops what comes from where packets no longer go to.
int ReversePathFilter(const std::string& interface) {
  int strictest = 0;
  for (const std::string& name : {std::string("all"), interface}) {
    int value = 0;
    std::ifstream(fmt::format("/proc/sys/net/ipv4/conf/{}/rp_filter", name)) >> value;
    strictest = std::max(strictest, value);
  }
  return strictest;
}

}  // namespace

Result<std::unique_ptr<WireDevice>> WireDevice::Open() {
  auto device = std::unique_ptr<WireDevice>(new WireDevice());
  device->tun_ = Fd(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!device->tun_.valid()) return NoDevice("/dev/net/tun cannot be opened");
  ifreq request{};
  std::strcpy(request.ifr_name, kNamePattern);
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device->tun_.get(), TUNSETIFF, &request) != 0) return NoDevice("no TUN device");
  device->name_ = request.ifr_name;
  device->raw_ = Fd(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW));
  if (!device->raw_.valid()) return NoDevice("no raw socket");
  request.ifr_flags = IFF_UP;
  if (ioctl(device->raw_.get(), SIOCSIFFLAGS, &request) != 0) return NoDevice("no TUN device");
  device->index_ = static_cast<int>(if_nametoindex(device->name_.c_str()));
  return device;
}

Status WireDevice::Divert(std::uint32_t address, bool any_interface) {
  if (ways_.contains(address)) return OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Route usual, RouteTo(address));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string alias, AliasOf(usual.interface));
  const std::string interface = NameOf(usual.interface);
  if (!any_interface && alias != kTestInterfaceAlias) {
    return EnvironmentError(
        "{} is not an interface of a test host, and is left alone; run it in scripts/test_hosts, "
        "or give --allow-network-faults",
        interface);
  }
  if (ReversePathFilter(interface) == 1) {
    return EnvironmentError(
        "{} filters reverse paths strictly; set net.ipv4.conf.all.rp_filter and "
        "net.ipv4.conf.{}.rp_filter to 2",
        interface, interface);
  }
  // As large packets as before, so that only what is asked for differs.
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (ioctl(raw_.get(), SIOCGIFMTU, &request) == 0) {
    std::strncpy(request.ifr_name, name_.c_str(), IFNAMSIZ - 1);
    ioctl(raw_.get(), SIOCSIFMTU, &request);
  }
  LOCKSTEP_RETURN_IF_ERROR(AddRoute(address, {index_, usual.source}));
  ways_[address] = {usual.interface, usual.source};
  return OkStatus();
}

std::string WireDevice::InterfaceOf(std::uint32_t address) const {
  const auto way = ways_.find(address);
  return way == ways_.end() ? "?" : NameOf(way->second.interface);
}

void WireDevice::Send(std::span<const char> packet, std::uint32_t to) const {
  const auto way = ways_.find(to);
  if (way == ways_.end()) return;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(to);
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const which = CMSG_FIRSTHDR(&message);
  which->cmsg_level = IPPROTO_IP;
  which->cmsg_type = IP_PKTINFO;
  which->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_ifindex = way->second.interface;
  std::memcpy(CMSG_DATA(which), &info, sizeof info);
  // What the interface does not take is lost, as anywhere in a network.
  static_cast<void>(sendmsg(raw_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void WireDevice::Deliver(std::span<const char> packet) const {
  static_cast<void>(!write(tun_.get(), packet.data(), packet.size()));
}

}  // namespace lockstep::stress::network
