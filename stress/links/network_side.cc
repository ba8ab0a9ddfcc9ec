// Starts the wire of the host when the first rule comes, tells it rules and when they heal, and
// reports which of them packets met.
#include "stress/links/network_side.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cstdlib>
#include <utility>

#include "core/control/codec.h"
#include "stress/links/link_orders.h"

namespace lockstep::stress::links {
namespace {

void Watch(const Fd& all, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event);
}

// By which other hosts reach this one.
std::string Addresses() {
  std::string text;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return text;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char address[INET_ADDRSTRLEN];
    const auto& four = *reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    text += fmt::format(" {}", inet_ntop(AF_INET, &four.sin_addr, address, sizeof address));
  }
  freeifaddrs(all);
  return text;
}

}  // namespace

NetworkSide::NetworkSide(bool any_interface)
    : any_interface_(any_interface),
      all_(epoll_create1(EPOLL_CLOEXEC)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  Watch(all_, bell_.get());
}

void NetworkSide::Tell(std::string report) {
  reports_.push_back(std::move(report));
  eventfd_write(bell_.get(), 1);
}

bool NetworkSide::Obey(std::string_view verb, std::string_view rest) {
  if (verb == kAddressesOrder) {
    Tell(fmt::format("{}{}", kAddressesReport, Addresses()));
  } else if (verb == kNetworkOrder) {
    Apply(rest);
  } else if (verb == kHealOrder) {
    if (wire_) wire_->Heal(std::atoi(std::string(rest).c_str()));
    return false;  // a relay may know the rule
  } else {
    return false;
  }
  return true;
}

void NetworkSide::Apply(std::string_view text) {
  const auto rule = control::Decode<network::NetworkRule>(text);
  LOCKSTEP_CHECK(rule.has_value(), "a rule of our own making");
  if (!wire_) {
    Result<std::unique_ptr<network::Wire>> wire = network::Wire::Start();
    if (!wire.ok()) {
      return Tell(fmt::format("{} {} {}", kImpossibleReport, rule->id, wire.status().message()));
    }
    wire_ = std::move(wire).value();
    Watch(all_, wire_->fd());
  }
  const Result<std::string> done = wire_->Apply(*rule, any_interface_);
  const std::string& what = done.ok() ? *done : done.status().message();
  Tell(fmt::format("{} {} {}", done.ok() ? kDoneReport : kImpossibleReport, rule->id, what));
}

std::vector<std::string> NetworkSide::TakeReports() {
  eventfd_t count;
  eventfd_read(bell_.get(), &count);
  if (wire_) {
    for (const int rule : wire_->TakeTouched()) {
      reports_.push_back(fmt::format("{} {} 0", kTouchedReport, rule));
    }
  }
  return std::exchange(reports_, {});
}

}  // namespace lockstep::stress::links
