// Small files of the kernel.
#ifndef LOCKSTEP_CORE_ENVIRONMENT_FILES_H_
#define LOCKSTEP_CORE_ENVIRONMENT_FILES_H_

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

#endif  // LOCKSTEP_CORE_ENVIRONMENT_FILES_H_
