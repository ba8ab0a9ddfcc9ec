// A meeting of processes that share a folder: a file a key.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "core/base/deadline.h"
#include "core/base/file_text.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"

namespace lockstep::comm {

class FolderMeeting final : public Meeting {
 public:
  explicit FolderMeeting(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Status Put(const std::string& key, const std::string& value) override {
    const std::filesystem::path path = PathOf(key);
    std::ofstream(path.string() + ".part", std::ios::binary) << value;
    std::filesystem::rename(path.string() + ".part", path);
    return OkStatus();
  }
  Result<std::string> Get(const std::string& key, Deadline deadline) override {
    while (!std::filesystem::exists(PathOf(key))) {
      if (deadline.Passed()) return DeadlineExceeded("nobody put " + key);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return TextOf(PathOf(key));
  }

 private:
  std::filesystem::path PathOf(std::string key) const {
    std::ranges::replace(key, '/', '_');
    return folder_ / key;
  }
  std::filesystem::path folder_;
};

}  // namespace lockstep::comm
