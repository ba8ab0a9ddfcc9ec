// Makes the TUN device and its routes, reads packets from it, and sends them on by the interface
// that was the way before.
#include "stress/network/wire_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "stress/network/route_socket.h"

namespace lockstep::stress::network {
namespace {

constexpr char kNamePattern[] = "lswire%d";

std::string NameOf(int interface) {
  char name[IF_NAMESIZE] = {};
  return if_indextoname(static_cast<unsigned>(interface), name) != nullptr ? name : "?";
}

Status NoDevice(const char* what) {
  const int error = errno;
  return EnvironmentError(fmt::format(
      "{}: {}; faults of the network need TUN devices (/dev/net/tun) and CAP_NET_ADMIN and "
      "CAP_NET_RAW in this network namespace",
      what, std::strerror(error)));
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
    return EnvironmentError(fmt::format(
        "{} is not an interface of a test host, and is left alone; run it in scripts/test_hosts, "
        "or give --allow-network-faults",
        interface));
  }
  if (ReversePathFilter(interface) == 1) {
    return EnvironmentError(
        fmt::format("{} filters reverse paths strictly; set net.ipv4.conf.all.rp_filter and "
                    "net.ipv4.conf.{}.rp_filter to 2",
                    interface, interface));
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
