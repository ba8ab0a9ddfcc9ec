// What all rooms of a launch know of its agents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::control {

// What an agent knows of its machine when it joins.
struct AgentInfo {
  int rank = 0;
  std::string host;     // host name
  std::string boot_id;  // the same value: the same kernel, hence a common tick counter
  int pid = 0;
  std::vector<int> cpus;  // the processors this rank may run on (its affinity mask)
  std::int64_t memory_available_bytes = 0;
  static void Describe(auto& fields, auto& info) {
    fields(info.rank, info.host, info.boot_id, info.pid, info.memory_available_bytes, info.cpus);
  }
};

}  // namespace lockstep::control
