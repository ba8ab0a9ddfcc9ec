// Small files of the kernel.
#pragma once

#include <fstream>
#include <string>

namespace lockstep::environment {

// The first line of a file; "unknown" when there is none.
inline std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

}  // namespace lockstep::environment
