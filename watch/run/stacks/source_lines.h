// Return addresses -> "solver.c:31", from the debug information of the file that holds them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace lockstep::watch::run::stacks {

class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  // `maps`: the process's /proc/PID/maps. The function and its file where there are no lines.
  std::string At(const std::string& maps, std::uint64_t return_address);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// As At, of a process that began with `maps` and may have loaded more since.
std::string LineOf(SourceLines& lines, const std::string& maps, pid_t pid, std::uint64_t site);

}  // namespace lockstep::watch::run::stacks
