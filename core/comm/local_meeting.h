// A meeting of threads of one process.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "core/base/deadline.h"
#include "core/base/status.h"
#include "core/comm/communicator.h"

namespace lockstep::comm {

class LocalMeeting final : public Meeting {
 public:
  Status Put(const std::string& key, const std::string& value) override {
    std::lock_guard lock(mutex_);
    if (!values_.emplace(key, value).second) return InvalidInput("put twice: " + key);
    put_.notify_all();
    return OkStatus();
  }

  Result<std::string> Get(const std::string& key, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    const auto limit = std::chrono::steady_clock::now() +
                       std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline.RemainingNs()));
    if (!put_.wait_until(lock, limit, [&] { return values_.count(key) > 0; })) {
      return DeadlineExceeded("nobody put " + key);
    }
    return values_.at(key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable put_;
  std::map<std::string, std::string> values_;
};

}  // namespace lockstep::comm
