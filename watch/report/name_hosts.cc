#include "watch/report/name_hosts.h"

#include <fmt/format.h>

#include <cctype>
#include <set>

namespace lockstep::watch::report {

std::string NameHosts(const std::string& text, const std::function<std::string(int)>& host_of) {
  constexpr std::size_t kWord = 5;  // "rank "
  std::set<int> named;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    int rank = -1;
    if (text.compare(at, kWord, "rank ") == 0 && std::isdigit(text[at + kWord]) != 0) {
      for (end = at + kWord; std::isdigit(text[end]) != 0; ++end) {
      }
      rank = std::stoi(text.substr(at + kWord, end - at - kWord));
    }
    result.append(text, at, end - at);
    const std::string host = rank < 0 ? "" : host_of(rank);
    if (!host.empty() && named.insert(rank).second) result += fmt::format(" (host {})", host);
    at = end;
  }
  return result;
}

}  // namespace lockstep::watch::report
