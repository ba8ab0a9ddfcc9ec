#include <fstream>
#include <sstream>

#include "watch/run/source_lines.h"

namespace lockstep::watch::run {

std::string LineOf(SourceLines& lines, const std::string& maps, pid_t pid, std::uint64_t site) {
  std::string where = lines.At(maps, site);
  if (where.compare(0, 2, "0x") != 0) return where;
  // In a library that was loaded later.
  std::ifstream now("/proc/" + std::to_string(pid) + "/maps");
  std::stringstream text;
  text << now.rdbuf();
  return lines.At(text.str(), site);
}

}  // namespace lockstep::watch::run
