// Each library reads its variable in its own way. NCCL: "^" excludes, "=" is exact, else a word is
// a prefix, and one interface will do; "name:port" is a name. PyTorch's gloo: all names must exist.
// Open MPI: names and IPv4 networks ("10.0.0.0/8"); it warns of those that are not there. What a
// rule here can't tell, such as a network of IPv6, counts as there.
#include "core/environment/interface_names.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::environment {
namespace {

using Interfaces = std::vector<Interface>;

std::vector<std::string> WordsOf(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) words.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

bool IsNamed(const Interfaces& interfaces, const std::string& name) {
  return std::ranges::find(interfaces, name, &Interface::name) != interfaces.end();
}

std::optional<std::uint32_t> AddressOf(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

// "10.0.0.0/8"
bool HasNetwork(const Interfaces& interfaces, const std::string& network) {
  if (network.find(':') != std::string::npos) return true;  // IPv6
  const std::size_t slash = network.find('/');
  const std::optional<std::uint32_t> wanted = AddressOf(network.substr(0, slash));
  unsigned bits = 0;
  const char* const end = network.data() + network.size();
  const auto [stop, error] = std::from_chars(network.data() + slash + 1, end, bits);
  if (!wanted || error != std::errc() || stop != end || bits > 32) return false;
  const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
  return std::ranges::any_of(interfaces, [&](const Interface& one) {
    const std::optional<std::uint32_t> address = AddressOf(one.address);
    return address && (*address & mask) == (*wanted & mask);
  });
}

bool NcclFindsOne(std::string_view value, const Interfaces& interfaces) {
  const bool excludes = value.starts_with('^');
  if (excludes) value.remove_prefix(1);
  const bool exact = value.starts_with('=');
  if (exact) value.remove_prefix(1);
  std::vector<std::string> words = WordsOf(value);
  for (std::string& word : words) word.resize(std::min(word.find(':'), word.size()));
  return words.empty() || std::ranges::any_of(interfaces, [&](const Interface& one) {
           const bool matches = std::ranges::any_of(words, [&](const std::string& word) {
             return exact ? one.name == word : one.name.starts_with(word);
           });
           return matches != excludes;
         });
}

void CheckOpenMpi(const std::string& name, const std::string& value, const Interfaces& interfaces,
                  Facts& facts) {
  const std::vector<std::string> words = WordsOf(value);
  std::vector<std::string> absent;
  for (const std::string& word : words) {
    const bool is_network = word.find('/') != std::string::npos;
    if (!(is_network ? HasNetwork(interfaces, word) : IsNamed(interfaces, word))) {
      absent.push_back(word);
    }
  }
  if (absent.empty()) return;
  if (absent.size() == words.size()) {
    facts.emplace_back("network/no_interface/" + name, name + "=" + value);
  } else {
    facts.emplace_back("network/some_interfaces_absent/" + name,
                       fmt::format("{} of {}={}", fmt::join(absent, ","), name, value));
  }
}

}  // namespace

Facts AbsentInterfaces(const Facts& variables, const Interfaces& interfaces) {
  Facts facts;
  if (interfaces.empty()) return facts;
  for (const auto& [path, value] : variables) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name == "OMPI_MCA_btl_tcp_if_include" || name == "OMPI_MCA_oob_tcp_if_include") {
      CheckOpenMpi(name, value, interfaces, facts);
    }
    if (value.size() < 2) continue;  // NCCL and PyTorch take it for unset
    const bool lost = name == "NCCL_SOCKET_IFNAME"
                          ? !NcclFindsOne(value, interfaces)
                          : name == "GLOO_SOCKET_IFNAME" &&
                                !std::ranges::all_of(WordsOf(value), [&](const std::string& word) {
                                  return IsNamed(interfaces, word);
                                });
    if (lost) facts.emplace_back("network/no_interface/" + name, name + "=" + value);
  }
  return facts;
}

}  // namespace lockstep::environment
