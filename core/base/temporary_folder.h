// A folder that goes with its owner.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace lockstep {

class TemporaryFolder {
 public:
  // "PARENT/NAME-xxxxxx"; an empty `parent` is none.
  TemporaryFolder(const std::filesystem::path& parent, const std::string& name) {
    std::string path = (parent / (name + "-XXXXXX")).string();
    if (!parent.empty() && mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Empty: it could not be made.
  const std::filesystem::path& path() const { return path_; }
  std::string File(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
