// What an agent tells the process that it starts.
#pragma once

#include <optional>
#include <string>

namespace lockstep::control {

// What a child is told of itself, through one environment variable.
struct ChildRole {
  // kExchange: only serves one exchange of addresses over MPI, then leaves.
  // kExchangingWorker: serves it with the MPI that it will work with, then is a worker.
  enum class Kind : int { kWorker, kExchange, kExchangingWorker };
  Kind kind = Kind::kWorker;
  int channel_fd = -1;
  int segment_fd = -1;  // -1: none
  int agent_pid = 0;
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int lifetime = 0;
  unsigned long long open_files = 0;  // soft limit (RLIMIT_NOFILE) that the launcher gave
};
inline constexpr char kRoleVariable[] = "LOCKSTEP_WORKER";
std::string EncodeRole(const ChildRole& role);
std::optional<ChildRole> DecodeRole(const std::string& text);

}  // namespace lockstep::control
