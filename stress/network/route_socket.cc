// Asks the kernel for routes and sets them, with one netlink message each and a deadline.
#include "stress/network/route_socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "core/base/fd.h"

namespace lockstep::stress::network {
namespace {

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

}  // namespace

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
  return EnvironmentError(
      fmt::format("there is no route to {}: {}", AddressText(address), std::strerror(error)));
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
  return EnvironmentError(fmt::format(
      "no route to {} over a wire: {}{}", AddressText(address), std::strerror(error),
      error == EEXIST ? "; does another agent of this host interfere with the same address?" : ""));
}

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
  return EnvironmentError(
      fmt::format("interface {} cannot be looked at: {}", interface, std::strerror(error)));
}

}  // namespace lockstep::stress::network
