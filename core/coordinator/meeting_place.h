// Where the workers of a lifetime exchange addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::coordinator {

// The key-value store behind the workers' Meeting, for one lifetime.
class MeetingPlace {
 public:
  struct Waiting {
    int rank;
    std::uint64_t request;
  };
  // Returns who waited for the key. Keys are bounded in number, values in size, by their senders'
  // messages; a store above kMostBytes takes nothing more (the getters reach their deadlines).
  std::vector<Waiting> Put(const std::string& key, std::string value) {
    std::vector<Waiting> waiting;
    if (bytes_ + key.size() + value.size() > kMostBytes) return waiting;
    bytes_ += key.size() + value.size();
    values_[key] = std::move(value);
    if (const auto found = waiting_.find(key); found != waiting_.end()) {
      waiting = std::move(found->second);
      waiting_.erase(found);
    }
    return waiting;
  }
  // The value, or nothing: then (rank, request) is remembered.
  const std::string* Get(const std::string& key, Waiting who) {
    if (const auto found = values_.find(key); found != values_.end()) return &found->second;
    waiting_[key].push_back(who);
    return nullptr;
  }
  void Clear() { *this = MeetingPlace(); }

  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Waiting>> waiting_;
  std::size_t bytes_ = 0;
};

}  // namespace lockstep::coordinator
