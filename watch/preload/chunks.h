// The memory of this process's segment, handed out chunk by chunk. Nothing here allocates from the
// heap or waits. One thread at a time.
#pragma once

#include <cstdint>

#include "watch/events/segment.h"

namespace lockstep::watch::preload {

class Chunks {
 public:
  // Chunks that were read and keep their memory, for the next ones: some MiB.
  static constexpr std::uint32_t kMostKept = 16;
  // Those with which it begins: no call waits for their pages.
  static constexpr std::uint32_t kFirst = 8;

  // Maps `file`, which is new and empty, and makes the first chunk ready. Null with `errno` where
  // there is no space.
  events::Header* Open(int file);
  // Makes `chunk` ready. It is the one behind the newest that is.
  events::Stopped Prepare(std::uint64_t chunk);

 private:
  void TakeBack(std::uint64_t read);
  bool Fill(std::uint32_t place);
  void Clear(std::uint32_t place);
  void Empty(std::uint32_t place);
  events::Event* At(std::uint32_t place);

  int file_ = -1;
  events::Header* header_ = nullptr;
  std::uint64_t taken_back_ = 0;  // chunks
  // Places that no chunk has: with memory, and without.
  std::uint32_t kept_count_ = 0;
  std::uint32_t empty_count_ = 0;
  std::uint32_t kept_[kMostKept] = {};
  std::uint32_t empty_[events::kChunks] = {};
};

}  // namespace lockstep::watch::preload
