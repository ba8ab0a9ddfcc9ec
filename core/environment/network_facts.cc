// Lists interfaces, InfiniBand ports and what the host's name resolves to. The resolver may take
// half a minute, so it runs on a thread that is left behind when time is up.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/file_text.h"
#include "core/base/process_stat.h"
#include "core/environment/facts.h"
#include "core/environment/interface_names.h"

namespace lockstep::environment {
namespace {

namespace fs = std::filesystem;

std::string AddressText(const sockaddr* address) {
  sockaddr_in of_ip4{};
  std::memcpy(&of_ip4, address, sizeof of_ip4);
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &of_ip4.sin_addr, text, sizeof text);
  return text;
}

// Bridges and taps of containers and virtual machines: addresses that no other host reaches.
bool IsOfContainers(std::string_view name) {
  for (const std::string_view prefix :
       {"docker", "br-", "virbr", "veth", "cni", "flannel", "lxc", "cali", "podman"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

void AddInterfaces(Facts& facts) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  std::set<std::string> usable, of_containers;
  std::vector<Interface> all;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const sa_family_t family = entry->ifa_addr == nullptr ? AF_UNSPEC : entry->ifa_addr->sa_family;
    if (family == AF_INET) all.push_back({entry->ifa_name, AddressText(entry->ifa_addr)});
    if (family == AF_INET6) all.push_back({entry->ifa_name, ""});
    const bool up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (!up || family != AF_INET) continue;
    facts.emplace_back(fmt::format("network/interface/{}", entry->ifa_name),
                       AddressText(entry->ifa_addr));
    (IsOfContainers(entry->ifa_name) ? of_containers : usable).insert(entry->ifa_name);
  }
  facts.emplace_back("network/interfaces", fmt::format("{}", usable.size()));
  facts.emplace_back("network/container_interfaces", fmt::format("{}", of_containers.size()));
  const Facts absent = AbsentInterfaces(VariableFacts(), all);
  facts.insert(facts.end(), absent.begin(), absent.end());
}

// "10.0.0.7", or why not. The resolver may take half a minute to fail.
std::string Resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error != 0) return std::string("fails: ") + gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
  return AddressText(found->ai_addr);
}

void AddHostName(double seconds, Facts& facts) {
  facts.emplace_back("network/host_name", HostName());
  auto answer = std::make_shared<std::promise<std::string>>();
  std::future<std::string> future = answer->get_future();
  // Left behind when it takes too long: there is no way to cancel getaddrinfo.
  std::thread([answer] { answer->set_value(Resolve(HostName())); }).detach();
  const bool answered =
      future.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  facts.emplace_back("network/host_name_resolves_to",
                     answered ? future.get() : fmt::format("fails: no answer in {} s", seconds));
}

void AddInfiniband(Facts& facts) {
  int devices = 0, active = 0;
  for (const fs::path& device : EntriesOf("/sys/class/infiniband")) {
    ++devices;
    for (const fs::path& port : EntriesOf(device / "ports")) {
      const std::string state = FirstLine(port / "state");
      active += state.find("ACTIVE") != std::string::npos ? 1 : 0;
      facts.emplace_back(fmt::format("network/infiniband/{}:{}", device.filename().string(),
                                     port.filename().string()),
                         fmt::format("{}, {}, {}", state, FirstLine(port / "rate"),
                                     FirstLine(port / "link_layer")));
    }
  }
  facts.emplace_back("network/infiniband_devices", fmt::format("{}", devices));
  facts.emplace_back("network/infiniband_active_ports", fmt::format("{}", active));
}

}  // namespace

Facts NetworkFacts(double seconds) {
  Facts facts;
  AddInterfaces(facts);
  AddHostName(seconds, facts);
  AddInfiniband(facts);
  return facts;
}

}  // namespace lockstep::environment
