// What an agent tells of its host, and the addresses on which it can be reached from others.
#include "core/control/machine.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/file_text.h"

namespace lockstep::control {
namespace {

struct Interface {
  std::string name;
  std::string address;
  bool loopback = false;
};

std::vector<Interface> UpInterfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, &freeifaddrs);
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr, text,
              sizeof text);
    interfaces.push_back({i->ifa_name, text, (i->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return interfaces;
}

}  // namespace

AgentInfo DescribeAgent(int rank) {
  AgentInfo info{.rank = rank, .host = HostName()};
  info.boot_id = FirstLine("/proc/sys/kernel/random/boot_id", "");
  info.pid = getpid();
  info.cpus = AllowedCpus();
  info.memory_available_bytes = MemAvailableBytes().value_or(0);
  return info;
}

Result<std::string> InterfaceAddress(const std::string& wanted, std::string_view variable) {
  std::string names;
  for (const Interface& i : UpInterfaces()) {
    const std::string_view name = i.name;
    const bool usual = !i.loopback && name != "docker0" && !name.starts_with("veth");
    if (wanted.empty() ? usual : (i.name == wanted || i.address == wanted)) return i.address;
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", i.name, i.address);
  }
  if (names.empty()) names = "none";
  if (wanted.empty()) {
    return EnvironmentError(
        "no network interface for ranks on several hosts (up: {}); name one with "
        "LOCKSTEP_INTERFACE",
        names);
  }
  return InvalidInput(
      "{}='{}' is no interface that is up here and has an IPv4 address; choose one of: {}",
      variable, wanted, names);
}

Result<std::string> ListenAddress(const LaunchContext& context) {
  if (context.single_host()) return std::string();
  for (const char* variable : {"LOCKSTEP_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    const char* wanted = std::getenv(variable);
    if (wanted != nullptr && *wanted != '\0') return InterfaceAddress(wanted, variable);
  }
  return InterfaceAddress("");
}

}  // namespace lockstep::control
