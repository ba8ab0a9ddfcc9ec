#include "watch/run/process_stat.h"

#include <fstream>
#include <sstream>

namespace lockstep::watch::run {

std::optional<ProcessStat> ReadStat(const std::string& text) {
  const std::size_t end = text.rfind(')');  // a name may hold anything
  if (end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end + 1));
  ProcessStat stat;
  fields >> stat.state;
  constexpr int kBeforeStarted = 18;
  std::string passed;
  for (int field = 0; field < kBeforeStarted; ++field) fields >> passed;
  fields >> stat.started;
  if (!fields) return std::nullopt;
  return stat;
}

std::optional<ProcessStat> StatOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return ReadStat(text);
}

}  // namespace lockstep::watch::run
