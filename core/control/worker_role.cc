#include "core/control/worker_role.h"

#include <fmt/core.h>

namespace lockstep::control {

std::string EncodeRole(const ChildRole& role) {
  return fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(role.kind), role.channel_fd,
                     role.segment_fd, role.agent_pid, role.rank, role.size, role.local_rank,
                     role.lifetime, role.open_files);
}

std::optional<ChildRole> DecodeRole(const std::string& text) {
  ChildRole role;
  int kind = 0;
  char more = 0;
  const int fields =
      std::sscanf(text.c_str(), "%d %d %d %d %d %d %d %d %llu%c", &kind, &role.channel_fd,
                  &role.segment_fd, &role.agent_pid, &role.rank, &role.size, &role.local_rank,
                  &role.lifetime, &role.open_files, &more);
  if (fields != 9 || kind < 0 || kind > static_cast<int>(ChildRole::Kind::kExchangingWorker) ||
      role.channel_fd < 0 || role.rank < 0 || role.rank >= role.size) {
    return std::nullopt;
  }
  role.kind = static_cast<ChildRole::Kind>(kind);
  return role;
}

}  // namespace lockstep::control
