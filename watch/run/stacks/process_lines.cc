#include "core/base/file_text.h"
#include "watch/run/stacks/source_lines.h"

namespace lockstep::watch::run::stacks {

std::string LineOf(SourceLines& lines, const std::string& maps, pid_t pid, std::uint64_t site) {
  std::string where = lines.At(maps, site);
  if (where.compare(0, 2, "0x") != 0) return where;
  // In a library that was loaded later.
  return lines.At(TextOf("/proc/" + std::to_string(pid) + "/maps"), site);
}

}  // namespace lockstep::watch::run::stacks
