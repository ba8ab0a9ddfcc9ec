// What a follower reported, kept for a successor.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace lockstep::coordinator {

class KeptRecords {
 public:
  explicit KeptRecords(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void Add(const std::string& payload) {
    // A message can span payloads, so nothing that comes behind a gap can be read.
    cut_ = cut_ || bytes_.size() + payload.size() > most_bytes_;
    if (!cut_) bytes_ += payload;
  }
  // Not all are kept.
  bool cut() const { return cut_; }
  std::string Take() { return std::move(bytes_); }

 private:
  const std::size_t most_bytes_;
  std::string bytes_;  // the first ones
  bool cut_ = false;
};

}  // namespace lockstep::coordinator
